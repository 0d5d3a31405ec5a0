/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Command requests and responses <-> plain structs.
 *
 * Requests are 128 bytes of which only the first @len are the driver's; the
 * rest reads as 0 here.  Nothing is refused: fields that are not defined for
 * the driver's version are left out, the others are for the handler to judge.
 */

#ifndef HW_ERDMA_DECODE_CMD_H
#define HW_ERDMA_DECODE_CMD_H

#include "engine/engine.h"
#include "engine/extdb.h"
#include "engine/mr.h"
#include "engine/qp.h"

typedef struct ErdmaCmdHdr {
    uint16_t pi;                /* after this command */
    uint8_t opcode;
    uint8_t sub_mod;
    uint8_t n_wqebbs;           /* 1..8 as written; sane is 1..4 */
} ErdmaCmdHdr;
void erdma_decode_cmd_hdr(const uint8_t *raw, ErdmaCmdHdr *hdr);

/* CREATE_EQ, DESTROY_EQ; the latter has only the numbers and the type. */
typedef struct ErdmaCmdEq {
    uint64_t addr;
    uint8_t vector;
    uint8_t eqn;
    uint8_t depth_log2;
    uint8_t type;
    uint64_t dbrec;
} ErdmaCmdEq;
void erdma_decode_create_eq(const uint8_t *raw, ErdmaCmdEq *eq);
void erdma_decode_destroy_eq(const uint8_t *raw, ErdmaCmdEq *eq);

typedef struct ErdmaCmdCreateCq {
    uint32_t cqn;
    uint32_t eqn;
    uint32_t depth_log2;
    uint8_t page_shift;
    uint64_t addr;              /* the one page, or the table of several */
    uint32_t n_pages;
    uint32_t first_off;
    uint64_t dbrec;
    bool has_db_page;
    uint16_t db_page;
} ErdmaCmdCreateCq;
void erdma_decode_create_cq(const uint8_t *raw, size_t len,
                            ErdmaCmdCreateCq *cq);

/* The doorbell pages of CREATE_QP, when it has any */
typedef struct ErdmaCmdQpDb {
    bool has_db_pages;
    uint16_t sq_page;
    uint16_t rq_page;
} ErdmaCmdQpDb;
/* Sets all of @qp but db_ctx. */
void erdma_decode_create_qp(const uint8_t *raw, size_t len,
                            ErdmaCreateQp *qp, ErdmaCmdQpDb *db);
void erdma_decode_modify_qp(const uint8_t *raw, ErdmaModifyQp *m);

typedef struct ErdmaCmdReflush {
    uint32_t qpn;
    uint16_t sq_pi;
    uint16_t rq_pi;
} ErdmaCmdReflush;
void erdma_decode_reflush(const uint8_t *raw, ErdmaCmdReflush *r);

void erdma_decode_reg_mr(const uint8_t *raw, ErdmaRegMr *reg);
uint32_t erdma_decode_dereg_mr(const uint8_t *raw);

/* The number in DESTROY_CQ and DESTROY_QP */
uint32_t erdma_decode_destroy(const uint8_t *raw);
/* Number of the QP or CQ that a command about one names */
uint32_t erdma_decode_cmd_object(const uint8_t *raw);

/* Returns false when the request sets no page size. */
bool erdma_decode_conf_device(const uint8_t *raw, unsigned *page_shift);
uint32_t erdma_decode_conf_mtu(const uint8_t *raw);
void erdma_decode_get_stats(const uint8_t *raw, uint64_t *addr,
                            uint32_t *len);
void erdma_decode_free_db(const uint8_t *raw, ErdmaExtPages *pages);

/* Response quadwords */
void erdma_encode_query_device(const ErdmaEngineConfig *cfg, uint64_t *resp0,
                               uint64_t *resp1);
uint64_t erdma_encode_alloc_db(const ErdmaExtPages *pages);
/* Builds ERDMA_STATS_SIZE bytes. */
void erdma_encode_stats(uint8_t *raw, const ErdmaEngineStats *es,
                        const ErdmaXportStats *xs);

/* Completion of the command whose first WQEBB is @index; 32 bytes */
typedef struct ErdmaCmdCqe {
    uint8_t opcode;
    uint8_t status;
    uint16_t index;
    uint64_t resp0;
    uint64_t resp1;
} ErdmaCmdCqe;
void erdma_encode_cmd_cqe(uint8_t *raw, const ErdmaCmdCqe *cqe, bool phase);

#endif /* HW_ERDMA_DECODE_CMD_H */
