package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/wire"
)

// LastAuditSeal returns the last seal of the audit.
func (s *Store) LastAuditSeal(ctx context.Context) (audit.Seal, error) {
	var head wire.AuditHead
	err := s.call(ctx, request{verb: "read the head of the audit", path: "/audit/head", out: &head})
	if errors.Is(err, sluice.ErrNotFound) {
		return audit.Seal{}, nil
	}
	return head.Seal, err
}

// AuditSeals lists seals of the audit.
func (s *Store) AuditSeals(ctx context.Context, from int64, limit int) ([]audit.Seal, error) {
	var answer wire.AuditSealList
	q := params{"from": {strconv.FormatInt(from, 10)}, "limit": {strconv.Itoa(limit)}}
	err := s.call(ctx, request{verb: "list seals of the audit", path: "/audit/seals", query: q.values(), out: &answer})
	return answer.Seals, err
}

// AuditDigests returns digests of entries, which the server computes.
func (s *Store) AuditDigests(ctx context.Context, after, upto int64, limit int) ([]audit.Digest, error) {
	const verb = "read hashes of the audit"
	var answer wire.AuditDigestList
	q := params{"after": {strconv.FormatInt(after, 10)}, "upto": {strconv.FormatInt(upto, 10)}, "limit": {strconv.Itoa(limit)}}
	if err := s.call(ctx, request{verb: verb, path: "/audit/digests", query: q.values(), out: &answer}); err != nil {
		return nil, err
	}
	digests, err := answer.Read(after)
	if err != nil {
		return nil, fmt.Errorf("%s: the answer of the server: %w", verb, err)
	}
	return digests, nil
}

// AuditBatch lists what a seal covers of a level.
func (s *Store) AuditBatch(ctx context.Context, seal int64, level audit.Level) ([]byte, error) {
	var answer wire.AuditBatch
	path := fmt.Sprintf("/audit/seals/%d/batches/%s", seal, level)
	err := s.call(ctx, request{verb: "read what a seal covers", path: path, out: &answer})
	return answer.Batch, err
}

// KeepAudit says how long entries are kept; package audit asks for it. The seal is the last one.
func (s *Store) KeepAudit(ctx context.Context, keep map[audit.Level]time.Duration, act sluice.Act) (audit.Seal, error) {
	body := wire.AuditKeepBody{ReasonBody: why(act)}
	for level, d := range keep {
		if level == audit.Full {
			body.Full = sluice.FormatDuration(d)
		} else {
			body.Notable = sluice.FormatDuration(d)
		}
	}
	r := saving("say how long the audit is kept", "/audit/keep", &act, body, nil)
	r.method = http.MethodPatch
	if err := s.call(ctx, r); err != nil {
		return audit.Seal{}, err
	}
	return s.LastAuditSeal(ctx)
}

// AuditSettled is an [*UnsupportedError]: the server seals.
func (s *Store) AuditSettled(context.Context) (int64, time.Time, error) {
	return 0, time.Time{}, s.theServer("To seal the audit")
}

// AddAuditSeal is an [*UnsupportedError]: the server seals.
func (s *Store) AddAuditSeal(context.Context, audit.Addition) (bool, error) {
	return false, s.theServer("To seal the audit")
}
