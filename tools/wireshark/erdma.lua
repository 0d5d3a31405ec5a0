-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Wireshark dissector for the wire format of QEMU's eRDMA device, version 1.
--
--   tshark -X lua_script:tools/wireshark/erdma.lua -r capture.pcap
--
-- or copy the file into Wireshark's plug-in folder.  Datagrams are found on
-- the UDP port of the preference "erdma.port", and on other ports by their
-- first two bytes.  Runs in Wireshark 4.0 to 4.4 (Lua 5.2 to 5.4); for that
-- reason it uses neither operators nor libraries for bits.  Wireshark 4.4 does
-- not load it when root runs it.
--
-- Format: docs/specs/erdma-wire.rst

local MAGIC = 0x6552
local VERSION = 1
local DEFAULT_PORT = 64791

local COMMON_LEN = 20
local DATA_LEN = 8
local MSG_HDR_LEN = 8
local ACK_LEN = 36
local RANGE_LEN = 8
local TERM_LEN = 12
local RANGES_MAX = 32
local INT_HOPS_MAX = 8
local UINT32 = 4294967296

local DATA, ACK, PING, TERM, TERM_ACK = 1, 2, 3, 4, 5

local types = {
    [DATA] = "DATA", [ACK] = "ACK", [PING] = "PING", [TERM] = "TERM",
    [TERM_ACK] = "TERM_ACK",
}

local number_names = {
    [DATA] = "Packet number", [ACK] = "Ack number", [PING] = "Packet number",
    [TERM] = "Packet number", [TERM_ACK] = "Number of the TERM",
}

local ops = {
    [1] = "SEND", [2] = "SEND_IMM", [3] = "SEND_INV", [4] = "WRITE",
    [5] = "WRITE_IMM", [6] = "READ_REQ", [7] = "READ_RESP",
    [8] = "ATOMIC_CAS", [9] = "ATOMIC_FAA", [10] = "ATOMIC_RESP",
}

local is_request = { [6] = true, [8] = true, [9] = true }

local ecns = {
    [0] = "Not-ECT", [1] = "ECT(1)", [2] = "ECT(0)", [3] = "CE",
}

local int_forms = { [0] = "none", [1] = "wide", [2] = "compact" }

-- Completion statuses of the device; the transport only carries them.
local statuses = {
    [0] = "success", [1] = "general error",
    [2] = "receive entry malformed", [3] = "key invalid",
    [4] = "address or length out of bounds", [5] = "right missing",
    [6] = "protection domain mismatch", [7] = "address wraps around",
    [8] = "send entry malformed", [9] = "no credit for a read",
    [10] = "local key invalid", [11] = "local address out of bounds",
    [12] = "local right missing", [13] = "local protection domain mismatch",
    [14] = "local address wraps around", [15] = "flushed",
    [16] = "retries exceeded",
}

local erdma = Proto("erdma", "eRDMA transport (QEMU)")

local f = {
    magic = ProtoField.uint16("erdma.magic", "Magic", base.HEX),
    version = ProtoField.uint8("erdma.version", "Version", base.DEC, nil,
                               0xf0),
    type = ProtoField.uint8("erdma.type", "Type", base.DEC, types, 0x0f),
    flags = ProtoField.uint8("erdma.flags", "Flags", base.HEX),
    ecn = ProtoField.uint8("erdma.flags.ecn", "ECN", base.DEC, ecns, 0x03),
    first = ProtoField.bool("erdma.flags.first", "First segment", 8, nil,
                            0x04),
    last = ProtoField.bool("erdma.flags.last", "Last segment", 8, nil, 0x08),
    rnr = ProtoField.bool("erdma.flags.rnr", "Receiver not ready", 8, nil,
                          0x10),
    nack = ProtoField.bool("erdma.flags.nack", "Go back", 8, nil, 0x20),
    ack_now = ProtoField.bool("erdma.flags.ack_now", "Ack at once", 8, nil,
                              0x40),
    dst = ProtoField.uint32("erdma.dst_cookie", "Destination cookie",
                            base.HEX),
    dst_qpn = ProtoField.uint32("erdma.dst_qpn", "Destination QPN"),
    src = ProtoField.uint32("erdma.src_cookie", "Source cookie", base.HEX),
    src_qpn = ProtoField.uint32("erdma.src_qpn", "Source QPN"),
    number = ProtoField.uint32("erdma.number", "Number"),
    int_form = ProtoField.uint8("erdma.int.form", "INT form", base.DEC,
                                int_forms, 0xf0),
    int_room = ProtoField.uint8("erdma.int.room", "INT hops, room for",
                                base.DEC, nil, 0x0f),
    op = ProtoField.uint8("erdma.op", "Operation", base.DEC, ops),
    n_ranges = ProtoField.uint8("erdma.ack.n_ranges", "Ranges"),
    status = ProtoField.uint8("erdma.term.status", "Status", base.DEC,
                              statuses),
    aux = ProtoField.uint8("erdma.aux", "Not used"),
    len = ProtoField.uint16("erdma.len", "Payload length"),

    int = ProtoField.none("erdma.int", "INT stack"),
    int_hops = ProtoField.uint8("erdma.int.n_hops", "Hops"),
    int_path = ProtoField.uint16("erdma.int.path_id", "Path", base.HEX),
    int_hop = ProtoField.none("erdma.int.hop", "Hop"),
    int_rate = ProtoField.uint64("erdma.int.rate", "Rate (bit/s)"),
    int_time = ProtoField.uint64("erdma.int.time", "Time (ns)"),
    int_sent = ProtoField.uint64("erdma.int.tx_bytes", "Bytes sent"),
    int_queued = ProtoField.uint32("erdma.int.q_len", "Bytes queued"),
    int_link = ProtoField.uint16("erdma.int.link_id", "Link", base.HEX),
    int_code = ProtoField.uint8("erdma.int.rate_code", "Rate code"),

    msn = ProtoField.uint32("erdma.msn", "MSN"),
    off = ProtoField.uint32("erdma.offset", "Offset"),
    msg = ProtoField.none("erdma.msg", "Message header"),
    msg_flags = ProtoField.uint8("erdma.msg.flags", "Flags", base.HEX),
    solicited = ProtoField.bool("erdma.msg.flags.solicited", "Solicited", 8,
                                nil, 0x01),
    msg_len = ProtoField.uint32("erdma.msg.len", "Length"),
    rkey = ProtoField.uint32("erdma.msg.rkey", "Remote key", base.HEX),
    raddr = ProtoField.uint64("erdma.msg.raddr", "Remote address", base.HEX),
    imm = ProtoField.uint32("erdma.msg.imm", "Immediate", base.HEX),
    inv_key = ProtoField.uint32("erdma.msg.inv_key", "Key to invalidate",
                                base.HEX),
    read_len = ProtoField.uint32("erdma.msg.read_len", "Bytes to read"),
    req_msn = ProtoField.uint32("erdma.msg.req_msn", "MSN of the request"),
    swap = ProtoField.uint64("erdma.msg.swap", "Swap", base.HEX),
    add = ProtoField.uint64("erdma.msg.add", "Add", base.HEX),
    compare = ProtoField.uint64("erdma.msg.compare", "Compare", base.HEX),
    original = ProtoField.uint64("erdma.msg.original", "Original", base.HEX),
    payload = ProtoField.bytes("erdma.payload", "Payload"),

    ack_msn = ProtoField.uint32("erdma.ack.msn", "Delivered MSN"),
    ack_off = ProtoField.uint32("erdma.ack.offset", "Delivered offset"),
    largest = ProtoField.uint32("erdma.ack.largest", "Largest packet number"),
    trigger = ProtoField.uint32("erdma.ack.trigger", "Triggered by"),
    delay = ProtoField.uint32("erdma.ack.delay", "Delay (ns)"),
    credit = ProtoField.uint32("erdma.ack.credit", "Receive credit (bytes)"),
    ce_packets = ProtoField.uint32("erdma.ack.ce_packets", "CE packets"),
    ce_bytes = ProtoField.uint32("erdma.ack.ce_bytes", "CE bytes"),
    ect_packets = ProtoField.uint32("erdma.ack.ect_packets", "ECT packets"),
    range = ProtoField.none("erdma.ack.range", "Received"),
    range_first = ProtoField.uint32("erdma.ack.range.first", "First"),
    range_last = ProtoField.uint32("erdma.ack.range.last", "Last"),

    term_msn = ProtoField.uint32("erdma.term.msn", "MSN that failed"),
    term_dmsn = ProtoField.uint32("erdma.term.delivered_msn",
                                  "Delivered MSN"),
    term_doff = ProtoField.uint32("erdma.term.delivered_offset",
                                  "Delivered offset"),

    request_in = ProtoField.framenum("erdma.request_in", "Answers", base.NONE,
                                     frametype.REQUEST),
    response_in = ProtoField.framenum("erdma.response_in", "Answered in",
                                      base.NONE, frametype.RESPONSE),
    response_time = ProtoField.relative_time("erdma.response_time",
                                             "Time since the request"),
    repeat_of = ProtoField.framenum("erdma.repeat_of", "Repeats",
                                    base.NONE, frametype.RETRANS_PREV),
}
erdma.fields = f

local e = {
    malformed = ProtoExpert.new("erdma.malformed", "Malformed packet",
                                expert.group.MALFORMED,
                                expert.severity.ERROR),
    version = ProtoExpert.new("erdma.bad_version", "Unknown version",
                              expert.group.UNDECODED, expert.severity.WARN),
    repeats = ProtoExpert.new("erdma.retransmission", "Retransmission",
                              expert.group.SEQUENCE, expert.severity.NOTE),
    term = ProtoExpert.new("erdma.terminated", "Connection terminated",
                           expert.group.RESPONSE_CODE,
                           expert.severity.WARN),
    rnr = ProtoExpert.new("erdma.receiver_not_ready", "Receiver not ready",
                          expert.group.RESPONSE_CODE,
                          expert.severity.NOTE),
    ce = ProtoExpert.new("erdma.congestion", "Congestion experienced",
                         expert.group.SEQUENCE, expert.severity.CHAT),
    int_full = ProtoExpert.new("erdma.int_overflow",
                               "More hops than the INT stack has room for",
                               expert.group.SEQUENCE, expert.severity.NOTE),
}
erdma.experts = {
    e.malformed, e.version, e.repeats, e.term, e.rnr, e.ce, e.int_full,
}

erdma.prefs.port = Pref.uint("UDP port", DEFAULT_PORT,
                             "UDP port of the eRDMA devices")

-- What was seen earlier in the capture; by direction of a connection.
local seen = {}         -- segments: frame of the first transmission
local requests = {}     -- frame and time of a read or atomic request
local answers = {}      -- frame of the answer to one
local repeats = {}      -- frame -> frame that it repeats

function erdma.init()
    seen, requests, answers, repeats = {}, {}, {}, {}
end

local function direction(pinfo, from, to)
    return table.concat({tostring(pinfo.net_src), tostring(pinfo.net_dst),
                         from, to}, "/")
end

-- 32-bit serial numbers: how far b is behind a, negative if it is ahead
local function distance(a, b)
    local d = (a - b) % UINT32
    if d >= UINT32 / 2 then
        d = d - UINT32
    end
    return d
end

local function name(names, value)
    return names[value] or string.format("unknown (%d)", value)
end

-- Says what is wrong; whatever was decoded so far stays visible.
local function malformed(c, text)
    c.tree:add_proto_expert_info(e.malformed, text)
    c.info = c.info .. " [malformed: " .. text .. "]"
end

local function int_bytes(form, room)
    if room < 1 or room > INT_HOPS_MAX then
        return nil
    elseif form == 1 then
        return 4 + 32 * room
    elseif form == 2 then
        return 2 + 8 * room
    end
    return nil
end

local function dissect_int_wide(buf, tree, n)
    local i
    for i = 0, n - 1 do
        local at = 4 + 32 * i
        local hop = tree:add(f.int_hop, buf(at, 32))
        hop:append_text(string.format(" %d", i + 1))
        hop:add(f.int_rate, buf(at, 8))
        hop:add(f.int_time, buf(at + 8, 8))
        hop:add(f.int_sent, buf(at + 16, 8))
        hop:add(f.int_queued, buf(at + 24, 4))
        hop:add(f.int_link, buf(at + 28, 2))
    end
end

local function dissect_int_compact(buf, tree, n)
    local i
    for i = 0, n - 1 do
        local at = 2 + 8 * i
        local r = buf(at, 8)
        local hop = tree:add(f.int_hop, r)
        hop:append_text(string.format(" %d", i + 1))
        hop:add(f.int_code, buf(at, 1), r:bitfield(0, 4))
        hop:add(f.int_time, buf(at, 4), UInt64(r:bitfield(4, 24)))
        hop:add(f.int_sent, buf(at + 3, 3), UInt64(r:bitfield(28, 20) * 128))
        hop:add(f.int_queued, buf(at + 6, 2), r:bitfield(48, 16) * 80)
    end
end

local function dissect_int(c, buf, form, room)
    local tree = c.tree:add(f.int, buf())
    local n, path
    if form == 1 then
        n, path = buf(0, 1):uint(), buf(2, 2):uint()
        tree:add(f.int_hops, buf(0, 1))
        tree:add(f.int_path, buf(2, 2))
    else
        n, path = buf(0, 2):bitfield(0, 4), buf(0, 2):bitfield(4, 12)
        tree:add(f.int_hops, buf(0, 1), n)
        tree:add(f.int_path, buf(0, 2), path)
    end
    tree:append_text(string.format(": %s, %d of %d hops", int_forms[form], n,
                                   room))
    c.info = c.info .. string.format(" INT=%d", n)
    if n > room then
        tree:add_proto_expert_info(e.int_full)
        return
    end
    if form == 1 then
        dissect_int_wide(buf, tree, n)
    else
        dissect_int_compact(buf, tree, n)
    end
end

-- Fields behind the common part of a message header, in wire order
local target = { {f.rkey, 4}, {f.raddr, 8} }
local function with_target(...)
    local list = { target[1], target[2] }
    local _, x
    for _, x in ipairs({...}) do
        list[#list + 1] = x
    end
    return list
end
local op_fields = {
    [1] = {},
    [2] = { {f.imm, 4} },
    [3] = { {f.inv_key, 4} },
    [4] = with_target(),
    [5] = with_target({f.imm, 4}),
    [6] = with_target({f.read_len, 4}),
    [7] = { {f.req_msn, 4} },
    [8] = with_target({f.swap, 8}, {f.compare, 8}),
    [9] = with_target({f.add, 8}),
    [10] = { {f.req_msn, 4}, {f.original, 8} },
}

local function msg_hdr_len(op)
    local len = MSG_HDR_LEN
    local _, x
    for _, x in ipairs(op_fields[op]) do
        len = len + x[2]
    end
    return len
end

local function dissect_msg_hdr(c, buf, op)
    local tree = c.tree:add(f.msg, buf())
    tree:append_text(": " .. ops[op])
    local flags = tree:add(f.msg_flags, buf(0, 1))
    flags:add(f.solicited, buf(0, 1))
    if buf(0, 1):uint() % 2 == 1 then
        c.info = c.info .. " solicited"
    end
    tree:add(f.msg_len, buf(4, 4))
    local at = MSG_HDR_LEN
    local _, x
    for _, x in ipairs(op_fields[op]) do
        local r = buf(at, x[2])
        tree:add(x[1], r)
        if x[1] == f.rkey then
            c.info = c.info .. string.format(" rkey=0x%08x", r:uint())
        elseif x[1] == f.raddr then
            c.info = c.info .. " raddr=0x" .. tostring(r:bytes()):lower()
        elseif x[1] == f.imm then
            c.info = c.info .. string.format(" imm=0x%08x", r:uint())
        elseif x[1] == f.inv_key then
            c.info = c.info .. string.format(" inv=0x%08x", r:uint())
        elseif x[1] == f.read_len then
            c.info = c.info .. string.format(" read=%d", r:uint())
        elseif x[1] == f.req_msn then
            c.req_msn = r:uint()
            c.info = c.info .. string.format(" req=%d", c.req_msn)
        end
        at = at + x[2]
    end
    return buf(4, 4):uint()
end

local function note_segment(c, msn, off)
    local key = string.format("%s/%d/%d", c.forward, msn, off)
    if not c.pinfo.visited then
        if seen[key] and seen[key] ~= c.pinfo.number then
            repeats[c.pinfo.number] = seen[key]
        else
            seen[key] = c.pinfo.number
        end
    end
    local first = repeats[c.pinfo.number]
    if first then
        c.tree:add(f.repeat_of, first):set_generated()
        c.tree:add_proto_expert_info(e.repeats)
        c.info = c.info .. " [retransmission]"
    end
end

-- Ties reads and atomics to their answers.
local function note_request(c, op, msn)
    local key
    if is_request[op] then
        key = string.format("%s/%d", c.forward, msn)
        if not c.pinfo.visited and not requests[key] then
            requests[key] = { c.pinfo.number, c.pinfo.rel_ts }
        end
        if answers[key] then
            c.tree:add(f.response_in, answers[key]):set_generated()
        end
    elseif c.req_msn then
        key = string.format("%s/%d", c.backward, c.req_msn)
        if not c.pinfo.visited and not answers[key] then
            answers[key] = c.pinfo.number
        end
        local req = requests[key]
        if req then
            local t = c.pinfo.rel_ts - req[2]
            local secs = math.floor(t)
            c.tree:add(f.request_in, req[1]):set_generated()
            c.tree:add(f.response_time,
                       NSTime(secs, math.floor((t - secs) * 1e9 + 0.5))
                      ):set_generated()
        end
    end
end

local function dissect_data(c, buf, op, payload_len)
    if not ops[op] then
        return malformed(c, "unknown operation")
    end
    local hdr_len = c.is_first and msg_hdr_len(op) or 0
    if buf:len() ~= DATA_LEN + hdr_len + payload_len then
        return malformed(c, "length")
    end
    local msn, off = buf(0, 4):uint(), buf(4, 4):uint()
    c.tree:add(f.msn, buf(0, 4))
    c.tree:add(f.off, buf(4, 4))
    c.info = c.info .. string.format(" %s MSN=%d [%d,%d)%s%s", ops[op], msn,
                                     off, off + payload_len,
                                     c.is_first and " FIRST" or "",
                                     c.is_last and " LAST" or "")
    local msg_len
    if c.is_first then
        msg_len = dissect_msg_hdr(c, buf(DATA_LEN, hdr_len), op)
        c.info = c.info .. string.format(" len=%d", msg_len)
    end
    if payload_len > 0 then
        c.tree:add(f.payload, buf(DATA_LEN + hdr_len, payload_len))
    end
    if c.is_first ~= (off == 0) then
        malformed(c, "FIRST and offset disagree")
    elseif off + payload_len >= UINT32 then
        malformed(c, "offset wraps")
    elseif not c.is_first then
        if payload_len == 0 then
            malformed(c, "empty segment")
        end
    elseif payload_len > msg_len then
        malformed(c, "segment longer than its message")
    elseif c.is_last ~= (payload_len == msg_len) then
        malformed(c, "LAST and length disagree")
    elseif payload_len == 0 and not c.is_last then
        malformed(c, "empty segment")
    end
    note_segment(c, msn, off)
    note_request(c, op, msn)
end

local function dissect_ack(c, buf, n_ranges)
    if n_ranges > RANGES_MAX then
        return malformed(c, "too many ranges")
    elseif buf:len() ~= ACK_LEN + n_ranges * RANGE_LEN then
        return malformed(c, "length")
    end
    c.tree:add(f.ack_msn, buf(0, 4))
    c.tree:add(f.ack_off, buf(4, 4))
    c.tree:add(f.largest, buf(8, 4))
    c.tree:add(f.trigger, buf(12, 4))
    c.tree:add(f.delay, buf(16, 4))
    c.tree:add(f.credit, buf(20, 4))
    local ce = c.tree:add(f.ce_packets, buf(24, 4))
    c.tree:add(f.ce_bytes, buf(28, 4))
    c.tree:add(f.ect_packets, buf(32, 4))
    if buf(24, 4):uint() > 0 then
        ce:add_proto_expert_info(e.ce)
    end
    c.info = c.info .. string.format(" delivered=%d+%d largest=%d",
                                     buf(0, 4):uint(), buf(4, 4):uint(),
                                     buf(8, 4):uint())
    if c.is_rnr then
        c.info = c.info .. " RNR"
        c.tree:add_proto_expert_info(e.rnr)
    end
    if c.is_nack then
        c.info = c.info .. " NACK"
    end
    local largest = buf(8, 4):uint()
    local above = (largest + 1) % UINT32
    local is_sane = n_ranges == 0 or buf(ACK_LEN + 4, 4):uint() == largest
    local i
    for i = 0, n_ranges - 1 do
        local r = buf(ACK_LEN + RANGE_LEN * i, RANGE_LEN)
        local first, last = r(0, 4):uint(), r(4, 4):uint()
        local item = c.tree:add(f.range, r)
        item:append_text(string.format(": %d to %d", first, last))
        item:add(f.range_first, r(0, 4))
        item:add(f.range_last, r(4, 4))
        c.info = c.info .. string.format(" %d-%d", first, last)
        if distance(above, last) <= 0 or distance(last, first) < 0 then
            is_sane = false
        end
        above = first
    end
    if not is_sane then
        malformed(c, "ranges out of order")
    end
end

local function dissect_term(c, buf, status)
    if buf:len() ~= TERM_LEN then
        return malformed(c, "length")
    end
    c.tree:add(f.term_msn, buf(0, 4))
    c.tree:add(f.term_dmsn, buf(4, 4))
    c.tree:add(f.term_doff, buf(8, 4))
    c.info = c.info .. string.format(" MSN=%d delivered=%d+%d: %s",
                                     buf(0, 4):uint(), buf(4, 4):uint(),
                                     buf(8, 4):uint(),
                                     name(statuses, status))
    c.tree:add_proto_expert_info(e.term)
end

local function dissect_body(c, buf, kind, aux, payload_len)
    if kind == DATA then
        dissect_data(c, buf, aux, payload_len)
    elseif kind == ACK then
        dissect_ack(c, buf, aux)
    elseif kind == TERM then
        dissect_term(c, buf, aux)
    elseif not types[kind] then
        malformed(c, "unknown type")
    elseif buf:len() > 0 then
        malformed(c, "length")
    end
end

local function add_cookie(tree, field, qpn_field, r)
    local cookie = r:uint()
    local item = tree:add(field, r)
    item:add(qpn_field, r, cookie % 0x100000):set_generated()
    return string.format("0x%08x", cookie)
end

local function add_flags(c, r)
    local flags = r:uint()
    local tree = c.tree:add(f.flags, r)
    local _, x
    for _, x in ipairs({f.ecn, f.first, f.last, f.rnr, f.nack, f.ack_now}) do
        tree:add(x, r)
    end
    local function has(bit)
        return flags % (2 * bit) >= bit
    end
    c.is_first, c.is_last = has(0x04), has(0x08)
    c.is_rnr, c.is_nack = has(0x10), has(0x20)
    if flags % 4 == 3 then
        c.info = c.info .. " CE"
        tree:add_proto_expert_info(e.ce)
    end
end

-- The part of the common header that says what the body is
local function add_kind(c, buf, kind)
    local number = c.tree:add(f.number, buf(12, 4))
    if number_names[kind] then
        number:set_text(string.format("%s: %d", number_names[kind],
                                      buf(12, 4):uint()))
    end
    c.tree:add(f.int_form, buf(16, 1))
    c.tree:add(f.int_room, buf(16, 1))
    if kind == DATA then
        c.tree:add(f.op, buf(17, 1))
    elseif kind == ACK then
        c.tree:add(f.n_ranges, buf(17, 1))
    elseif kind == TERM then
        c.tree:add(f.status, buf(17, 1))
    else
        c.tree:add(f.aux, buf(17, 1))
    end
    c.tree:add(f.len, buf(18, 2))
end

local function dissect(buf, pinfo, root)
    local len = buf:len()
    if len < COMMON_LEN or buf(0, 2):uint() ~= MAGIC then
        return 0
    end
    pinfo.cols.protocol = "eRDMA"
    local c = { pinfo = pinfo, tree = root:add(erdma, buf()), info = "" }
    local version, kind = buf(2, 1):bitfield(0, 4), buf(2, 1):bitfield(4, 4)
    c.tree:add(f.magic, buf(0, 2))
    local item = c.tree:add(f.version, buf(2, 1))
    c.tree:add(f.type, buf(2, 1))
    if version ~= VERSION then
        item:add_proto_expert_info(e.version)
        pinfo.cols.info = string.format("version %d", version)
        return len
    end
    c.info = string.format("%s %d", name(types, kind), buf(12, 4):uint())
    add_flags(c, buf(3, 1))
    local dst = add_cookie(c.tree, f.dst, f.dst_qpn, buf(4, 4))
    local src = add_cookie(c.tree, f.src, f.src_qpn, buf(8, 4))
    c.forward = direction(pinfo, src, dst)
    c.backward = table.concat({tostring(pinfo.net_dst),
                               tostring(pinfo.net_src), dst, src}, "/")
    add_kind(c, buf, kind)

    local form, room = buf(16, 1):bitfield(0, 4), buf(16, 1):bitfield(4, 4)
    local at = COMMON_LEN
    if form ~= 0 or room ~= 0 then
        local n = int_bytes(form, room)
        if not n or at + n > len then
            malformed(c, "INT stack")
            pinfo.cols.info = c.info
            return len
        end
        dissect_int(c, buf(at, n):tvb(), form, room)
        at = at + n
    end
    local body = buf(at, len - at)
    if len > at then
        dissect_body(c, body:tvb(), kind, buf(17, 1):uint(),
                     buf(18, 2):uint())
    elseif kind ~= PING and kind ~= TERM_ACK then
        malformed(c, types[kind] and "length" or "unknown type")
    end
    c.tree:append_text(string.format(", %s, QP %d to QP %d",
                                     name(types, kind),
                                     buf(8, 4):uint() % 0x100000,
                                     buf(4, 4):uint() % 0x100000))
    pinfo.cols.info = c.info
    return len
end

function erdma.dissector(buf, pinfo, root)
    return dissect(buf, pinfo, root)
end

local udp_ports = DissectorTable.get("udp.port")
local current_port = DEFAULT_PORT
udp_ports:add(current_port, erdma)

function erdma.prefs_changed()
    if erdma.prefs.port == current_port then
        return
    end
    udp_ports:remove(current_port, erdma)
    current_port = erdma.prefs.port
    if current_port > 0 then
        udp_ports:add(current_port, erdma)
    end
end

erdma:register_heuristic("udp", function(buf, pinfo, root)
    return dissect(buf, pinfo, root) > 0
end)
