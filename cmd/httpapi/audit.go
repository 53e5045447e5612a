package httpapi

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/wire"
)

// verifyTimeout is the longest verification: it reads every entry.
const verifyTimeout = 10 * time.Minute

// audits adds the routes of the chain that makes the audit tamper-evident.
func (a *API) audits() {
	add(a, Route{
		Method: "GET", Path: "/audit/head", Name: "get-audit-head", Group: "look", Summary: "read the head of the audit chain",
		Text: "Keep it out of reach of the store's writers.", Needs: access.Look, Commands: []string{"audit head"}, noun: "seal",
	}, func(ctx context.Context, c *call, _ *nothing) (wire.AuditHead, error) {
		last, err := c.lastSeal(ctx)
		if err == nil && last.No == 0 {
			err = sluice.ErrNotFound
		}
		return wire.AuditHead{Head: last.Head().String(), No: last.No, At: last.At, Upto: last.Upto, Seal: last}, err
	})
	add(a, Route{
		Method: "POST", Path: "/audit/verify", Name: "verify-audit", Group: "look", Summary: "prove that no audit entry was changed",
		Text:  "The server reads the chain and every entry that it covers, which may take minutes. `sluice audit verify` takes no server's word for it: it reads the chain in parts, and compares by itself.",
		Needs: access.Look, Commands: []string{"audit verify"}, noun: "seal", timeout: verifyTimeout,
	}, verifyAudit)
	a.chainParts()
	add(a, Route{
		Method: "GET", Path: "/audit/keep", Name: "get-audit-retention", Group: "look", Summary: "read how long audit entries are kept",
		Needs: access.Look, Commands: []string{"audit keep"}, noun: "seal",
	}, func(ctx context.Context, c *call, _ *nothing) (keepView, error) {
		last, err := c.lastSeal(ctx)
		return keepOf(last), err
	})
	add(a, Route{
		Method: "PATCH", Path: "/audit/keep", Name: "change-audit-retention", Group: "look", Summary: "change how long audit entries are kept",
		Needs: access.Administer, Commands: []string{"audit keep"}, noun: "seal",
	}, keepAudit)
}

// chainParts adds the routes by which a program verifies the audit itself. Digests cover payloads of schedules, so whoever may not read
// those could guess at them.
func (a *API) chainParts() {
	part := func(path, name, summary string) Route {
		return Route{Method: "GET", Path: path, Name: name, Group: "look", Summary: summary, Text: "For programs that verify the audit.", Needs: access.Read, Commands: []string{"audit verify"}, noun: "seal"}
	}
	add(a, part("/audit/seals", "list-audit-seals", "list the seals of the audit"), func(ctx context.Context, c *call, in *sealsInput) (wire.AuditSealList, error) {
		chain, err := audit.Of(c.api.store)
		if err != nil {
			return wire.AuditSealList{}, err
		}
		seals, err := chain.AuditSeals(ctx, in.From, in.Limit)
		return wire.AuditSealList{Seals: orEmpty(seals)}, err
	})
	add(a, part("/audit/digests", "list-audit-digests", "list hashes of audit entries"), func(ctx context.Context, c *call, in *digestsInput) (wire.AuditDigestList, error) {
		chain, err := audit.Of(c.api.store)
		if err != nil {
			return wire.AuditDigestList{}, err
		}
		digests, err := chain.AuditDigests(ctx, in.After, in.Upto, in.Limit)
		return wire.AuditDigestListOf(digests), err
	})
	add(a, part("/audit/seals/{no}/batches/{level}", "get-audit-batch", "read which entries a seal covers"), func(ctx context.Context, c *call, in *batchOfSealInput) (wire.AuditBatch, error) {
		chain, err := audit.Of(c.api.store)
		if err != nil {
			return wire.AuditBatch{}, err
		}
		batch, err := chain.AuditBatch(ctx, in.No, in.Level)
		return wire.AuditBatch{Batch: batch}, err
	})
}

// sealsInput chooses seals.
type sealsInput struct {
	From  int64 `query:"from" doc:"the number of the first seal"`
	Limit int   `query:"limit" doc:"the most seals" minimum:"1" maximum:"1000" default:"200"`
}

// digestsInput chooses entries.
type digestsInput struct {
	After int64 `query:"after" doc:"the seq before the first entry"`
	Upto  int64 `query:"upto" doc:"the seq of the last entry" required:"true"`
	Limit int   `query:"limit" doc:"the most entries" minimum:"1" maximum:"10000" default:"10000"`
}

// batchOfSealInput chooses what a seal covers.
type batchOfSealInput struct {
	No    int64       `path:"no" doc:"the seal"`
	Level audit.Level `path:"level" doc:"the level of the entries" enum:"notable,full"`
}

// lastSeal reads the last seal of the chain.
func (c *call) lastSeal(ctx context.Context) (audit.Seal, error) {
	chain, err := audit.Of(c.api.store)
	if err != nil {
		return audit.Seal{}, err
	}
	return chain.LastAuditSeal(ctx)
}

// verifyInput verifies the audit.
type verifyInput struct{ Body verifyBody }

// verifyBody names heads.
type verifyBody struct {
	// Heads are heads that were kept outside of the store, and must be in the chain.
	Heads []string `json:"heads,omitempty" maxItems:"100"`
}

// verified is the result of a verification.
type verified struct {
	// Intact says that the chain and the entries are as they were sealed, and that each head is in the chain.
	Intact bool `json:"intact"`
	// Seals and Entries count the seals and the entries that were compared. Unsealed entries wait for a seal.
	Seals    int64 `json:"seals"`
	Entries  int64 `json:"entries"`
	Unsealed int64 `json:"unsealed"`
	// Head is the head of the chain. Missing: there is no seal.
	Head string `json:"head,omitempty"`
	// TooOld are the heads of whose time retention has left nothing.
	TooOld []string `json:"heads_too_old,omitempty"`
	// Fault is the first fault. Missing: there is none.
	Fault *audit.Fault `json:"fault,omitempty"`
}

func verifyAudit(ctx context.Context, c *call, in *verifyInput) (out verified, err error) {
	var options audit.VerifyOptions
	for _, text := range in.Body.Heads {
		head, err := audit.ParseHead(text)
		if err != nil {
			return out, &sluice.InvalidError{Field: "heads", Rule: err.Error()}
		}
		options.Heads = append(options.Heads, head)
	}
	chain, err := audit.Of(c.api.store)
	if err != nil {
		return out, err
	}
	r, err := audit.Verify(ctx, chain, options)
	if err != nil {
		return out, err
	}
	out = verified{Intact: r.Fault == nil && len(r.TooOld) == 0, Seals: r.Seals, Entries: r.Entries, Unsealed: r.Unsealed, Fault: r.Fault}
	if r.Last.No > 0 {
		out.Head = r.Last.Head().String()
	}
	for _, head := range r.TooOld {
		out.TooOld = append(out.TooOld, head.String())
	}
	return out, nil
}

// keepView says how long entries are kept.
type keepView struct {
	// Notable is for acts of people, settings and unusual moves, and Full for entries that only the setting audit=full
	// writes. 0s: for ever.
	Notable string `json:"notable"`
	Full    string `json:"full"`
}

func keepOf(s audit.Seal) keepView {
	return keepView{sluice.FormatDuration(s.Keeps(audit.Notable)), sluice.FormatDuration(s.Keeps(audit.Full))}
}

// keepInput changes how long entries are kept.
type keepInput struct{ Body wire.AuditKeepBody }

// leastKeep stops a typing error from deleting everything.
const leastKeep = time.Hour

func keepAudit(ctx context.Context, c *call, in *keepInput) (keepView, error) {
	keep := make(map[audit.Level]time.Duration)
	for level, text := range map[audit.Level]string{audit.Notable: in.Body.Notable, audit.Full: in.Body.Full} {
		if text == "" {
			continue
		}
		d, err := sluice.ParseDuration(text)
		if err != nil || d != 0 && (d < leastKeep || d > audit.MaxKeep) {
			return keepView{}, &sluice.InvalidError{Field: string(level), Rule: "must be 0s or a duration from 1h to 3650d"}
		}
		keep[level] = d
	}
	if len(keep) == 0 {
		return keepView{}, &sluice.InvalidError{Field: "body", Rule: "must have notable or full"}
	}
	chain, err := audit.Of(c.api.store)
	if err != nil {
		return keepView{}, err
	}
	seal, err := audit.Keep(ctx, chain, keep, c.act(in.Body.Reason))
	return keepOf(seal), err
}
