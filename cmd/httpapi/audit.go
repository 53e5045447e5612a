package httpapi

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
)

// verifyTimeout is the longest verification: it reads every entry.
const verifyTimeout = 10 * time.Minute

// audits adds the routes of the chain that makes the audit tamper-evident.
func (a *API) audits() {
	add(a, Route{
		Method: "GET", Path: "/audit/head", Name: "get-audit-head", Group: "look", Summary: "read the head of the audit chain",
		Text: "Keep it out of reach of the store's writers.", Needs: access.Look, Commands: []string{"audit head"}, noun: "seal",
	}, func(ctx context.Context, c *call, _ *nothing) (headView, error) {
		last, err := c.lastSeal(ctx)
		if err == nil && last.No == 0 {
			err = sluice.ErrNotFound
		}
		return headView{last.Head().String(), last.No, last.At, last.Upto}, err
	})
	add(a, Route{
		Method: "POST", Path: "/audit/verify", Name: "verify-audit", Group: "look", Summary: "prove that no audit entry was changed",
		Text:  "Reads the chain and every entry that it covers, which may take minutes.",
		Needs: access.Look, Commands: []string{"audit verify"}, noun: "seal", timeout: verifyTimeout,
	}, verifyAudit)
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

// lastSeal reads the last seal of the chain.
func (c *call) lastSeal(ctx context.Context) (audit.Seal, error) {
	chain, err := audit.Of(c.api.store)
	if err != nil {
		return audit.Seal{}, err
	}
	return chain.LastAuditSeal(ctx)
}

// headView is the head of the chain.
type headView struct {
	// Head is the number and the hash of the last seal, as verify-audit takes it.
	Head string `json:"head"`
	// No is the number of the seal, At when it was made, and Upto the last seq that it covers.
	No   int64     `json:"no"`
	At   time.Time `json:"at"`
	Upto int64     `json:"upto"`
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
type keepInput struct{ Body keepBody }

// keepBody is a change. Levels that are missing stay as they are.
type keepBody struct {
	ReasonBody
	// Notable and Full are the new durations, such as 90d. 0s: for ever.
	Notable string `json:"notable,omitempty" maxLength:"20"`
	Full    string `json:"full,omitempty" maxLength:"20"`
}

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
