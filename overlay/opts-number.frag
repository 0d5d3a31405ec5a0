/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers with a fraction, as properties of -object filter-netem are */
static bool
opts_type_number(Visitor *v, const char *name, double *obj, Error **errp)
{
    OptsVisitor *ov = to_ov(v);
    const QemuOpt *opt;

    opt = lookup_scalar(ov, name, errp);
    if (!opt) {
        return false;
    }
    if (qemu_strtod_finite(opt->str ? opt->str : "", NULL, obj)) {
        error_setg(errp, QERR_INVALID_PARAMETER_VALUE, opt->name,
                   "a number");
        return false;
    }
    processed(ov, name);
    return true;
}


