package httpapi_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/forecast"
	operations "github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/remote"
)

// bench is a store over HTTP. Calls that the API does not have go to the server's store, as upkeep there would make
// them.
type bench struct {
	*remote.Store
	// server returns the store of the server, which a restart replaces.
	server func() sluice.Store
	// limits has the limits of the last insert per queue. The server goes by the queue's settings, so an operator must
	// set them before.
	limits *sync.Map
}

// roomOf holds the limits of waiting jobs: of the queue and of each tenant, and whether a full queue cancels others.
type roomOf struct {
	max, tenant int
	shed        bool
}

// setRoom changes the settings of a queue so that the server applies the limits of an insert.
func (b bench) setRoom(ctx context.Context, in sluice.Insert) error {
	want := roomOf{in.MaxWaiting, in.TenantMaxWaiting, in.Shed}
	if last, is := b.limits.Load(in.Queue); is && last == want || !is && want == (roomOf{}) {
		return nil
	}
	client := sluice.NewClient(b.Store, sluice.ClientOptions{})
	change := func(s *sluice.Settings) error {
		s.MaxWaiting, s.TenantMaxWaiting, s.Shed = want.max, want.tenant, want.shed
		return nil
	}
	act := sluice.Act{By: "operator", Reason: "test"}
	_, err := client.ChangeSettings(ctx, in.Queue, act, change)
	if errors.Is(err, sluice.ErrNotFound) {
		settings := sluice.DefaultSettings()
		_ = change(&settings)
		_, err = client.EnsureQueue(ctx, in.Queue, settings, act)
	}
	b.limits.Store(in.Queue, want)
	return err
}

// atServer reports whether only the server can make a call, which the error of the remote store says.
func atServer(err error) bool { return errors.Is(err, errors.ErrUnsupported) }

// isInternal reports whether a queue is internal to Sluice.
func isInternal(queues ...string) bool { return slices.ContainsFunc(queues, sluice.IsInternalQueue) }

// Unwrap gives the server's store to features that the API does not offer.
func (b bench) Unwrap() sluice.Store { return b.server() }

func (b bench) Recover(ctx context.Context, queue string, limit int, by string) (sluice.Recovered, error) {
	if _, err := b.Store.Recover(ctx, queue, limit, by); !atServer(err) {
		return sluice.Recovered{}, err
	}
	return b.server().Recover(ctx, queue, limit, by)
}

func (b bench) Expire(ctx context.Context, limit int, by string) (int, error) {
	if _, err := b.Store.Expire(ctx, limit, by); !atServer(err) {
		return 0, err
	}
	return b.server().Expire(ctx, limit, by)
}

func (b bench) Repair(ctx context.Context, by string) (int, error) {
	if _, err := b.Store.Repair(ctx, by); !atServer(err) {
		return 0, err
	}
	return b.server().Repair(ctx, by)
}

func (b bench) Prune(ctx context.Context, after string, limit int) (sluice.Pruned, error) {
	if _, err := b.Store.Prune(ctx, after, limit); !atServer(err) {
		return sluice.Pruned{}, err
	}
	return b.server().Prune(ctx, after, limit)
}

func (b bench) RecordQueueChange(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	if _, err := b.Store.RecordQueueChange(ctx, queue, act); !atServer(err) {
		return sluice.Queue{}, err
	}
	return b.server().RecordQueueChange(ctx, queue, act)
}

func (b bench) AppendAudit(ctx context.Context, entries []sluice.AuditEntry) error {
	if err := b.Store.AppendAudit(ctx, entries); !atServer(err) {
		return err
	}
	return b.server().AppendAudit(ctx, entries)
}

func (b bench) AddStats(ctx context.Context, holder string, stats []stat.Stat) error {
	if err := b.Store.AddStats(ctx, holder, stats); !atServer(err) {
		return err
	}
	return stat.Given(b.server()).AddStats(ctx, holder, stats)
}

func (b bench) FoldStats(ctx context.Context, limit int) (int, error) {
	if _, err := b.Store.FoldStats(ctx, limit); !atServer(err) {
		return 0, err
	}
	return stat.Given(b.server()).FoldStats(ctx, limit)
}

func (b bench) CountWaves(ctx context.Context) (forecast.Count, error) {
	if _, err := b.Store.CountWaves(ctx); !atServer(err) {
		return forecast.Count{}, err
	}
	return forecast.Given(b.server()).CountWaves(ctx)
}

// Enqueue and Admit use the server's store for internal queues, which start flows and notify receivers.
func (b bench) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	if slices.ContainsFunc(jobs, func(in sluice.Insert) bool { return isInternal(in.Queue) }) {
		return b.server().Enqueue(ctx, jobs)
	}
	for _, in := range jobs {
		if err := b.setRoom(ctx, in); err != nil {
			return nil, err
		}
	}
	return b.Store.Enqueue(ctx, jobs)
}

func (b bench) Admit(ctx context.Context, queues []string, act sluice.Act) ([]error, error) {
	if isInternal(queues...) {
		return b.server().Admit(ctx, queues, act)
	}
	return b.Store.Admit(ctx, queues, act)
}

// Claim and Settle use the server's store for internal queues and for runs of engines.
func (b bench) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	if isInternal(request.Queue) {
		return b.server().Claim(ctx, request)
	}
	claimed, err := b.Store.Claim(ctx, request)
	if atServer(err) {
		return b.server().Claim(ctx, request)
	}
	return claimed, err
}

func (b bench) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	errs, err := b.Store.Settle(ctx, settlements)
	if err != nil {
		return nil, err
	}
	for i, failure := range errs {
		if !atServer(failure) || errors.Is(failure, remote.ErrRefused) {
			continue
		}
		again, err := b.server().Settle(ctx, settlements[i:i+1])
		if err != nil {
			return nil, err
		}
		errs[i] = again[0]
	}
	return errs, nil
}

func (b bench) FireSchedules(ctx context.Context, limit int, checker sluice.PayloadChecker) (schedule.Fired, error) {
	if _, err := b.Store.FireSchedules(ctx, limit, checker); !atServer(err) {
		return schedule.Fired{}, err
	}
	return schedule.Given(b.server()).FireSchedules(ctx, limit, checker)
}

func (b bench) SaveAlerts(ctx context.Context, round alert.Evaluation) error {
	if err := b.Store.SaveAlerts(ctx, round); !atServer(err) {
		return err
	}
	return alert.Given(b.server()).SaveAlerts(ctx, round)
}

func (b bench) SaveReceiver(ctx context.Context, name string) error {
	if err := b.Store.SaveReceiver(ctx, name); !atServer(err) {
		return err
	}
	return alert.Given(b.server()).SaveReceiver(ctx, name)
}

// SaveOperation and Operation use the server's store for the steps of an operation, since upkeep there carries it out.
func (b bench) SaveOperation(ctx context.Context, o operations.Operation, act sluice.Act) (operations.Operation, error) {
	return operations.Given(b.server()).SaveOperation(ctx, o, act)
}

func (b bench) Operation(ctx context.Context, id sluice.ID) (operations.Operation, error) {
	if _, err := b.Store.Operation(ctx, id); err != nil {
		return operations.Operation{}, err
	}
	return operations.Given(b.server()).Operation(ctx, id)
}

func (b bench) Operations(ctx context.Context, filter operations.Filter) ([]operations.Operation, error) {
	if _, err := b.Store.Operations(ctx, filter); err != nil {
		return nil, err
	}
	return operations.Given(b.server()).Operations(ctx, filter)
}

func (b bench) AdvanceBatches(ctx context.Context, limit int) (batch.Advanced, error) {
	if _, err := b.Store.AdvanceBatches(ctx, limit); !atServer(err) {
		return batch.Advanced{}, err
	}
	return batch.Given(b.server()).AdvanceBatches(ctx, limit)
}

func (b bench) ForgetBatches(ctx context.Context, age time.Duration, limit int) (int, error) {
	if _, err := b.Store.ForgetBatches(ctx, age, limit); !atServer(err) {
		return 0, err
	}
	return batch.Given(b.server()).ForgetBatches(ctx, age, limit)
}

func (b bench) RecountBatch(ctx context.Context, id sluice.ID) (batch.Recount, error) {
	if _, err := b.Store.RecountBatch(ctx, id); !atServer(err) {
		return batch.Recount{}, err
	}
	return batch.Given(b.server()).RecountBatch(ctx, id)
}

func (b bench) Elect(ctx context.Context, holderID string, tasks []string, lease time.Duration) ([]string, error) {
	if _, err := b.Store.Elect(ctx, holderID, tasks, lease); !atServer(err) {
		return nil, err
	}
	return presence.Given(b.server()).Elect(ctx, holderID, tasks, lease)
}

func (b bench) Heartbeat(ctx context.Context, holder presence.Holder) (presence.Instruction, error) {
	told, err := b.Store.Heartbeat(ctx, holder)
	if atServer(err) {
		return presence.Given(b.server()).Heartbeat(ctx, holder)
	}
	return told, err
}

func (b bench) AuditSettled(ctx context.Context) (int64, time.Time, error) {
	if _, _, err := b.Store.AuditSettled(ctx); !atServer(err) {
		return 0, time.Time{}, err
	}
	return b.chain().AuditSettled(ctx)
}

func (b bench) AddAuditSeal(ctx context.Context, addition audit.Addition) (bool, error) {
	if _, err := b.Store.AddAuditSeal(ctx, addition); !atServer(err) {
		return false, err
	}
	return b.chain().AddAuditSeal(ctx, addition)
}

// KeepAudit uses the server's store to keep the audit for less than an hour, which the API refuses.
func (b bench) KeepAudit(ctx context.Context, keep map[audit.Level]time.Duration, act sluice.Act) (audit.Seal, error) {
	seal, err := b.Store.KeepAudit(ctx, keep, act)
	if errors.Is(err, sluice.ErrInvalid) {
		return audit.Keep(ctx, b.chain(), keep, act)
	}
	return seal, err
}

func (b bench) RecordIntent(ctx context.Context, intents []engine.Intent) ([]error, error) {
	if _, err := b.Store.RecordIntent(ctx, intents); !atServer(err) {
		return nil, err
	}
	return engine.Given(b.server()).RecordIntent(ctx, intents)
}

func (b bench) Dispatches(ctx context.Context, filter engine.DispatchFilter) ([]*sluice.Claim, error) {
	if _, err := b.Store.Dispatches(ctx, filter); !atServer(err) {
		return nil, err
	}
	return engine.Given(b.server()).Dispatches(ctx, filter)
}

func (b bench) ForgetOrphanRuns(ctx context.Context, runs []engine.OrphanRun) error {
	if err := b.Store.ForgetOrphanRuns(ctx, runs); !atServer(err) {
		return err
	}
	return engine.Given(b.server()).ForgetOrphanRuns(ctx, runs)
}

// chain returns the audit chain of the server's store.
func (b bench) chain() audit.Store {
	chain, err := audit.Of(b.server())
	if err != nil {
		panic(err)
	}
	return chain
}

// AccessToken and the methods below use the server's store for the hashes of tokens.
func (b bench) AccessToken(ctx context.Context, name string) (access.Token, error) {
	if _, err := b.Store.AccessToken(ctx, name); !atServer(err) {
		return access.Token{}, err
	}
	return access.Given(b.server()).AccessToken(ctx, name)
}

func (b bench) AccessTokenOf(ctx context.Context, hash string) (access.Token, error) {
	if _, err := b.Store.AccessTokenOf(ctx, hash); !atServer(err) {
		return access.Token{}, err
	}
	return access.Given(b.server()).AccessTokenOf(ctx, hash)
}

func (b bench) SaveAccessToken(ctx context.Context, token access.Token, act sluice.Act) (access.Token, error) {
	if _, err := b.Store.SaveAccessToken(ctx, token, act); !atServer(err) {
		return access.Token{}, err
	}
	return access.Given(b.server()).SaveAccessToken(ctx, token, act)
}

func (b bench) UseAccessToken(ctx context.Context, name string) error {
	if err := b.Store.UseAccessToken(ctx, name); !atServer(err) {
		return err
	}
	return access.Given(b.server()).UseAccessToken(ctx, name)
}
