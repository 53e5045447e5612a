package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/event"
)

const (
	// sealLook is how often upkeep looks at the audit: it seals a full batch at once, a smaller one after
	// SealInterval.
	sealLook = 5 * time.Second
	// sealMost is the most seals per look, for 500,000 entries. An older audit is sealed look by look.
	sealMost = 50
	// sealShare limits sealing and retention to 1/sealShare of the time, so that busy queues do not slow down.
	// The remaining entries are sealed when there is less to do.
	sealShare = 30
	// auditPruneInterval is how often retention deletes from the audit.
	auditPruneInterval = time.Hour
	// headLogInterval is how often the head of the chain is logged, if it has changed.
	headLogInterval = 10 * time.Minute
)

// sealing seals the audit outside the rounds: the first time may take minutes.
type sealing struct {
	work   beside
	rests  time.Time // until when it rests, as set by the last run
	all    sync.WaitGroup
	pruned time.Time
	logged time.Time // when the head was logged
	head   audit.Head
	asked  time.Time // when it last checked whether to send the head to receivers
}

// sealBeside seals the audit outside the rounds, if it is time.
func (u *Upkeep) sealBeside(ctx context.Context) {
	s := &u.sealing
	was := s.work.running
	if s.work.over(); was && !s.work.running && s.rests.After(s.work.at) {
		s.work.at = s.rests
	}
	if !s.work.due(sealLook) {
		return
	}
	s.all.Go(func() {
		begun := time.Now()
		if err := u.sealAudit(ctx, false); err != nil {
			u.failed(ctx, "seal the audit", err)
		}
		s.rests = time.Now().Add((sealShare - 1) * time.Since(begun))
		s.work.ended <- false
	})
}

// sealIf seals the audit if all work is to be done.
func (u *Upkeep) sealIf(ctx context.Context, all bool) error {
	if !all {
		return nil
	}
	return u.sealAudit(ctx, true)
}

// sealAudit seals settled entries, publishes the head, and deletes entries by retention.
func (u *Upkeep) sealAudit(ctx context.Context, all bool) error {
	chain, err := audit.Of(u.store)
	if err != nil {
		return nil //nolint:nilerr // a store from outside Sluice may have no chain of seals
	}
	options := audit.SealOptions{Patience: u.options.SealInterval, Most: sealMost}
	if all {
		options.Patience = 0
	}
	sealed, err := audit.SealSettled(ctx, chain, options)
	if err != nil || sealed.Last.No == 0 {
		return err
	}
	u.logHead(sealed.Last)
	return errors.Join(u.reportHead(ctx, sealed.Last), u.pruneAudit(ctx, chain, all))
}

// pruneAudit deletes entries by retention.
func (u *Upkeep) pruneAudit(ctx context.Context, chain audit.Store, all bool) error {
	if !all && time.Since(u.sealing.pruned) < auditPruneInterval {
		return nil
	}
	u.sealing.pruned = time.Now()
	pruned, err := audit.Prune(ctx, chain, u.holder.ID)
	if pruned.Any() > 0 {
		u.log.Emit(event.AuditPruned, "", "notable", pruned.Entries[audit.Notable], "full", pruned.Entries[audit.Full])
	}
	return err
}

// logHead writes the head into the log, out of reach of somebody who rewrites the store.
func (u *Upkeep) logHead(last audit.Seal) {
	s := &u.sealing
	if s.head == last.Head() || time.Since(s.logged) < headLogInterval {
		return
	}
	s.head, s.logged = last.Head(), time.Now()
	u.log.Emit(event.AuditHead, "", "head", last.Head().String(), "entries", last.Upto)
}

// reportHead sends the head to the receivers of alerts, once per HeadInterval over all processes: the audit
// records the last time. If only that record was sealed since, reportHead sends nothing.
func (u *Upkeep) reportHead(ctx context.Context, last audit.Seal) error {
	interval := u.options.HeadInterval
	if interval < 0 || time.Since(u.sealing.asked) < min(interval, headLogInterval) {
		return nil
	}
	u.sealing.asked = time.Now()
	reported, err := u.store.Audit(ctx, sluice.AuditFilter{Object: audit.ObjectAudit, Name: "head", Limit: 1})
	if err != nil {
		return err
	}
	if len(reported) > 0 {
		var before struct{ Seal int64 }
		err := json.Unmarshal(reported[0].After, &before)
		same := err == nil && last.No >= before.Seal                                          // a chain that began anew after a move counts from 1
		if same && last.No <= before.Seal+1 || last.At.Sub(reported[0].At).Abs() < interval { // the clock may have been set back
			return nil
		}
	}
	book, err := alert.Given(u.store).AlertBook(ctx)
	if err != nil || len(book.Receivers) == 0 {
		return err
	}
	after, err := json.Marshal(map[string]any{"seal": last.No, "head": last.Head()})
	if err != nil {
		return err
	}
	return alert.Given(u.store).SaveAlerts(ctx, alert.Evaluation{
		Messages: []alert.Message{alert.HeadMessage(last.Head().String(), last.At)},
		Entries:  []sluice.AuditEntry{{Object: audit.ObjectAudit, Name: "head", Event: audit.EventHead, Actor: u.holder.ID, After: after}},
	})
}
