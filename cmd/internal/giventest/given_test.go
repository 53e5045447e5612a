package giventest_test

import (
	"context"
	"database/sql"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/cmd/metric"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/forward"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/internal/verbtest"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/pressure"
	"github.com/sluice-queue/sluice/progress"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/search"
	"github.com/sluice-queue/sluice/sluicetest"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/tenancy"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// values are made from nil in place of a port, a handler or a function. A method that can fail must return ErrInvalid.
func values() map[string]any {
	pg, lite, store := &postgres.Store{}, &sqlite.Store{}, memory.New(memory.Options{})
	queues := []string{"x"}
	return map[string]any{
		"sluice.NewClient":        sluice.NewClient(nil, sluice.ClientOptions{}),
		"sluice.NewClient, typed": sluice.NewClient((*memory.Store)(nil), sluice.ClientOptions{}),
		"sluice.NewLiveSettings":  sluice.NewLiveSettings(nil, sluice.LiveOptions{}),
		"sluice.GivenStore":       sluice.GivenStore(nil),
		"sluice.GivenEnqueuer":    sluice.GivenEnqueuer(nil),
		"engine.GivenEngine":      engine.GivenEngine(nil),
		"observe.Store":           observe.Store(nil, nil),
		"observe.Enqueuer":        observe.Enqueuer(nil, nil),
		"observe.Engine":          observe.Engine(nil, "x", nil),
		"alert.New":               alert.New(nil, alert.Options{Receivers: []alert.Receiver{deaf{}}}),
		"alert.New, receiver": only{func(ctx context.Context) error {
			_, err := alert.New(store, alert.Options{Receivers: []alert.Receiver{nil}}).Evaluate(ctx)
			return err
		}},
		"alert.New, receiver to tell": only{func(ctx context.Context) error {
			_, err := alert.New(store, alert.Options{Receivers: []alert.Receiver{nil}}).Notify(ctx)
			return err
		}},
		"worker.New":                worker.New(nil, worker.Options{}),
		"dispatcher.New":            dispatcher.New(nil, dispatcher.Options{}),
		"upkeep.New":                upkeep.New(nil, upkeep.Options{}),
		"upkeep.New, engine":        only{upkeep.New(store, upkeep.Options{Engines: map[string]engine.Engine{"x": nil}}).Run},
		"upkeep.New, receiver":      only{upkeep.New(store, upkeep.Options{Receivers: []alert.Receiver{nil}}).Run},
		"forward.New":               forward.New(nil, store, forward.Options{Queues: queues}),
		"forward.New, centre":       forward.New(store, nil, forward.Options{Queues: queues}),
		"engine/local.New":          local.New(nil, local.Options{}),
		"engine/temporal.New":       temporal.New(nil, temporal.Options{}),
		"sluicetest.Record":         sluicetest.Record(nil),
		"store/postgres InTx":       pg.InTx(nil),
		"store/postgres InSQLTx":    pg.InSQLTx(nil),
		"store/sqlite InTx":         lite.InTx(nil),
		"store/sqlite InTx, typed":  lite.InTx((*sql.Tx)(nil)),
		"worker.Handle, handler":    handled(store),
		"engine/local.Handle, func": executed(store),
	}
}

// only is a service that has nothing but Run.
type only struct{ run func(context.Context) error }

func (o only) Run(ctx context.Context) error { return o.run(ctx) }

// deaf is a receiver of alerts that ignores every message.
type deaf struct{}

func (deaf) Name() string                                { return "deaf" }
func (deaf) Notify(context.Context, alert.Message) error { return nil }

func handled(store sluice.Store) *worker.Worker {
	w := worker.New(store, worker.Options{})
	worker.Handle[int](w, sluice.QueueOf[int]("x"), nil, worker.QueueOptions{})
	return w
}

func executed(store sluice.Store) only {
	e := local.New(store, local.Options{})
	local.Handle[int](e, "x", nil, worker.QueueOptions{})
	return only{e.Run}
}

// These values are valid, so that only nil can be at fault.
var (
	silence    = alert.Silence{During: time.Hour}
	ofFlow     = sluice.Job{Labels: map[string]string{flow.LabelFlow: sluice.NewID().String()}}
	daily      = schedule.Definition{Queue: "q", Cron: "@daily"}
	held       = sluice.Job{ID: sluice.ID{1}, BlockedBy: sluice.ID{1}, State: sluice.StateQueued}
	nightly    = schedule.Schedule{Name: "s", Definition: daily}
	cancelling = operation.Operation{Kind: operation.KindCancel, State: operation.StateRunning}
)

// calls are functions and methods that get nil. Each must return ErrInvalid.
var calls = map[string]func(ctx context.Context) error{
	"engine.Adopts": func(ctx context.Context) error {
		job := sluice.Job{Queue: "x", Key: "x"}
		run := engine.RunOf(&sluice.Claim{Job: job}, sluice.Settings{RunRef: "{key}"})
		_, err := engine.Adopts(ctx, nil, job, sluice.Settings{}, engine.Outcome{Work: run.Work, Job: sluice.NewID()}, time.Time{})
		return err
	},
	"health.Of": func(ctx context.Context) error {
		_, err := health.Of(ctx, nil, health.Options{})
		return err
	},
	"sluice.Enqueue of a TypedQueue": func(ctx context.Context) error {
		_, err := sluice.QueueOf[int]("x").Enqueue(ctx, nil, 1, sluice.EnqueueOptions{})
		return err
	},
	"sluice.Within": func(ctx context.Context) error {
		_, err := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{}).Within(nil).Enqueue(ctx, sluice.NewJob{Queue: "x", Payload: []byte("1")})
		return err
	},
	"sluice.Change of Settings": func(context.Context) error { s := sluice.DefaultSettings(); return s.Change(nil) },
	"sluice.ChangeSettings": func(ctx context.Context) error {
		_, err := clientWithQueue(ctx).ChangeSettings(ctx, "x", act, nil)
		return err
	},
	"sluice.ChangeQueue": func(ctx context.Context) error {
		_, err := clientWithQueue(ctx).ChangeQueue(ctx, "x", act, nil)
		return err
	},
	"changes.For": func(ctx context.Context) error {
		_, err := changes.For(ctx, clientWithQueue(ctx), "x", time.Hour, act, nil)
		return err
	},
	"changes.Schedule": func(ctx context.Context) error {
		_, err := changes.Schedule(ctx, nil, "x", changes.Window{From: "16:00", To: "18:00", Zone: "UTC"}, map[string]string{"rate": "1/s"}, act)
		return err
	},
	"changes.Cancel": func(ctx context.Context) error { _, err := changes.Cancel(ctx, nil, "x", 1, act); return err },
	"changes.Undo":   func(ctx context.Context) error { _, err := changes.Undo(ctx, nil, "x", act); return err },
	"changes.Apply":  func(ctx context.Context) error { _, _, err := changes.Apply(ctx, nil, sluice.Queue{}, "x"); return err },
	"tenancy.ChangeLimits": func(ctx context.Context) error {
		_, err := tenancy.ChangeLimits(ctx, memory.New(memory.Options{}), tenancy.Limits{Tenant: "x"}, act, nil)
		return err
	},
	"alert.SetRule": func(ctx context.Context) error {
		_, _, err := alert.SetRule(ctx, memory.New(memory.Options{}), "x", "", act, nil)
		return err
	},
	"forecast.Of":      func(ctx context.Context) error { _, err := forecast.Of(ctx, nil, forecast.Request{}); return err },
	"forecast.Read":    func(ctx context.Context) error { _, err := forecast.Read(ctx, nil, forecast.Filter{}); return err },
	"forecast.Recount": func(ctx context.Context) error { _, err := forecast.Recount(ctx, nil); return err },
	"forecast.Given":   func(ctx context.Context) error { _, err := forecast.Given(nil).CountWaves(ctx); return err },
	"stat.Read":        func(ctx context.Context) error { _, err := stat.Read(ctx, nil, stat.Filter{}); return err },
	"stat.Given":       func(ctx context.Context) error { return stat.Given(nil).AddStats(ctx, "h", nil) },
	"stat.Of":          func(ctx context.Context) error { _, err := stat.Of(ctx, nil, "x", 0); return err },
	"stat.OfQueues": func(ctx context.Context) error {
		_, err := stat.OfQueues(ctx, nil, sluice.QueueFilter{}, 0)
		return err
	},
	"stat.Over":        func(ctx context.Context) error { _, err := stat.Over(ctx, nil, stat.Filter{}); return err },
	"stat.OfTenant":    func(ctx context.Context) error { _, err := stat.OfTenant(ctx, nil, "x", "x", 0); return err },
	"stat.OfTenants":   func(ctx context.Context) error { return errOf(stat.OfTenants(ctx, nil, sluice.QueueFilter{}, 0)) },
	"deadletter.Read":  func(ctx context.Context) error { _, err := deadletter.Read(ctx, nil, nil, 0); return err },
	"explain.Job":      func(ctx context.Context) error { _, err := explain.Job(ctx, nil, sluice.NewID()); return err },
	"explain.PausedBy": func(ctx context.Context) error { _, err := explain.PausedBy(ctx, nil, sluice.Queue{}); return err },
	"admission.Given":  func(ctx context.Context) error { _, err := admission.Given(nil).QueuePolicy(ctx); return err },
	"pressure.Given":   func(ctx context.Context) error { return errOf(pressure.Given(nil).WaitingJobs(ctx, "q", "", 1)) },
	"pressure.Of": func(ctx context.Context) error {
		return errOf(pressure.Of(ctx, nil, sluice.Queue{Settings: sluice.Settings{MaxWaiting: 1}}))
	},
	"deadletter.Given":  func(ctx context.Context) error { _, err := deadletter.Given(nil).DeadNotes(ctx, nil); return err },
	"deadletter.NoteOf": func(ctx context.Context) error { _, err := deadletter.NoteOf(ctx, nil, "9ac1f00d"); return err },
	"deadletter.Change": func(ctx context.Context) error {
		return errOf(deadletter.Change(ctx, nil, "9ac1f00d", deadletter.NoteChange{}, act))
	},
	"deadletter.Save": func(ctx context.Context) error {
		return errOf(deadletter.Save(ctx, nil, deadletter.Note{Fingerprint: "9ac1f00d"}, act))
	},
	"admission.Of": func(ctx context.Context) error { _, err := admission.Of(ctx, nil); return err },
	"admission.Save": func(ctx context.Context) error {
		_, err := admission.Save(ctx, nil, admission.DefaultPolicy(), sluice.Act{By: "x", Reason: "x"})
		return err
	},
	"engine.Given": func(ctx context.Context) error {
		_, err := engine.Given(nil).Dispatches(ctx, engine.DispatchFilter{})
		return err
	},
	"presence.Given":   func(ctx context.Context) error { _, err := presence.Given(nil).Leaders(ctx); return err },
	"presence.Holders": func(ctx context.Context) error { _, err := presence.Holders(ctx, nil); return err },
	"await.Given":      func(ctx context.Context) error { return await.Given(nil).Await(ctx, nil) },
	"await.New":        func(ctx context.Context) error { _, err := await.New(nil).Wait(ctx, sluice.NewID()); return err },
	"await.Result":     func(ctx context.Context) error { _, err := await.Result[int](ctx, nil, sluice.NewID()); return err },
	"presence.Instruct": func(ctx context.Context) error {
		_, err := presence.Instruct(ctx, nil, presence.Target{All: true}, presence.WantedStop, 0, sluice.Act{By: "ada", Reason: "test"})
		return err
	},
	"presence.Instructions": func(ctx context.Context) error { _, err := presence.Instructions(ctx, nil); return err },
	"presence.Remains": func(ctx context.Context) error {
		_, err := presence.Remains(ctx, nil, presence.Target{All: true})
		return err
	},
	"presence.Save": func(ctx context.Context) error {
		_, err := presence.Save(ctx, nil, presence.Instruction{Target: presence.Target{All: true}, Wanted: presence.WantedStop}, sluice.Act{By: "ada", Reason: "test"})
		return err
	},
	"presence.Tasks": func(ctx context.Context) error { _, err := presence.Tasks(ctx, nil); return err },
	"explain.Given": func(ctx context.Context) error {
		_, err := explain.Given(nil).Position(ctx, sluice.NewID())
		return err
	},
	"search.Jobs":    func(ctx context.Context) error { _, err := search.Jobs(ctx, nil, search.Query{}, 1); return err },
	"search.Preview": func(ctx context.Context) error { _, err := search.Preview(ctx, nil, search.Query{}, 1); return err },
	"search.ReadPage": func(ctx context.Context) error {
		_, err := search.ReadPage(ctx, nil, search.Query{}, search.Place{}, 1)
		return err
	},
	"edit.Job": func(ctx context.Context) error {
		return edit.Job(ctx, nil, sluice.Job{}, edit.Change{Priority: 1}, act, nil)
	},
	"edit.Given":     func(ctx context.Context) error { return edit.Given(nil).EditJob(ctx, edit.Edit{}, act) },
	"flow.Start":     func(ctx context.Context) error { _, err := flow.Start(ctx, nil, flow.Flow{}); return err },
	"flow.Work":      func(ctx context.Context) error { _, err := flow.Work(ctx, nil, "h", nil); return err },
	"flow.List":      func(ctx context.Context) error { _, err := flow.List(ctx, nil, sluice.ID{}, 1); return err },
	"flow.Read":      func(ctx context.Context) error { _, err := flow.Read(ctx, nil, sluice.NewID()); return err },
	"flow.Result":    func(ctx context.Context) error { _, err := flow.Result[int](ctx, nil, ofFlow, "a"); return err },
	"flow.Results":   func(ctx context.Context) error { _, err := flow.Results[int](ctx, nil, ofFlow, "a"); return err },
	"batch.Open":     func(ctx context.Context) error { _, err := batch.Open(ctx, nil, batch.Batch{}, act); return err },
	"batch.CloseAll": func(ctx context.Context) error { return batch.CloseAll(ctx, nil, sluice.NewID(), act) },
	"batch.Close":    func(ctx context.Context) error { return batch.Close(ctx, nil, sluice.NewID(), act) },
	"batch.Read":     func(ctx context.Context) error { _, err := batch.Read(ctx, nil, sluice.NewID()); return err },
	"batch.List":     func(ctx context.Context) error { _, err := batch.List(ctx, nil, batch.Filter{}); return err },
	"batch.Cancel":   func(ctx context.Context) error { _, err := batch.Cancel(ctx, nil, sluice.NewID(), act); return err },
	"batch.Pause":    func(ctx context.Context) error { _, err := batch.Pause(ctx, nil, sluice.NewID(), act); return err },
	"batch.Resume":   func(ctx context.Context) error { _, err := batch.Resume(ctx, nil, sluice.NewID(), act); return err },
	"batch.Retry": func(ctx context.Context) error {
		_, err := batch.Retry(ctx, nil, sluice.NewID(), operation.Operation{}, act)
		return err
	},
	"batch.Given":  func(ctx context.Context) error { _, err := batch.Given(nil).AdvanceBatches(ctx, 1); return err },
	"hold.NotHeld": func(ctx context.Context) error { _, err := hold.NotHeld(ctx, nil, []sluice.ID{held.ID}); return err },
	"hold.Hold":    func(ctx context.Context) error { return hold.Hold(ctx, nil, []sluice.ID{held.ID}, act) },
	"hold.Release": func(ctx context.Context) error { return hold.Release(ctx, nil, []sluice.ID{held.ID}, act) },
	"hold.List":    func(ctx context.Context) error { _, err := hold.List(ctx, nil, hold.Filter{}); return err },
	"hold.Of":      func(ctx context.Context) error { _, _, err := hold.Of(ctx, nil, held); return err },
	"hold.Given":   func(ctx context.Context) error { _, err := hold.Given(nil).Holds(ctx, hold.Filter{}); return err },
	"search.ReadPage, held": func(ctx context.Context) error {
		_, err := search.ReadPage(ctx, nil, search.Query{Held: true}, search.Place{}, 1)
		return err
	},
	"operation.Preview": func(ctx context.Context) error { _, err := operation.Preview(ctx, nil, cancelling, 1); return err },
	"operation.Start":   func(ctx context.Context) error { _, err := operation.Start(ctx, nil, cancelling, act); return err },
	"operation.Save":    func(ctx context.Context) error { _, err := operation.Save(ctx, nil, cancelling, act); return err },
	"operation.Read":    func(ctx context.Context) error { _, err := operation.Read(ctx, nil, sluice.NewID()); return err },
	"operation.List":    func(ctx context.Context) error { _, err := operation.List(ctx, nil, operation.Filter{}); return err },
	"operation.Pause":   func(ctx context.Context) error { _, err := operation.Pause(ctx, nil, sluice.NewID(), act); return err },
	"operation.Resume":  func(ctx context.Context) error { _, err := operation.Resume(ctx, nil, sluice.NewID(), act); return err },
	"operation.Stop":    func(ctx context.Context) error { _, err := operation.Stop(ctx, nil, sluice.NewID(), act); return err },
	"operation.SetRate": func(ctx context.Context) error {
		_, err := operation.SetRate(ctx, nil, sluice.NewID(), sluice.Rate{}, act)
		return err
	},
	"operation.CarryOut": func(ctx context.Context) error {
		_, _, err := operation.CarryOut(ctx, nil, cancelling, "h", nil)
		return err
	},
	"limit.Read":     func(ctx context.Context) error { _, err := limit.Read(ctx, nil, "bank"); return err },
	"progress.Of":    func(ctx context.Context) error { _, err := progress.Of(ctx, nil, sluice.NewID()); return err },
	"progress.Given": func(ctx context.Context) error { _, err := progress.Given(nil).Progress(ctx, nil); return err },
	"limit.List":     func(ctx context.Context) error { _, err := limit.List(ctx, nil); return err },
	"limit.Uses":     func(ctx context.Context) error { _, err := limit.Uses(ctx, nil); return err },
	"limit.Change": func(ctx context.Context) error {
		_, err := limit.Change(ctx, nil, "bank", act, func(*limit.Limit) error { return nil })
		return err
	},
	"limit.Close":         func(ctx context.Context) error { _, err := limit.Close(ctx, nil, "bank", 0, act); return err },
	"limit.Undo":          func(ctx context.Context) error { _, err := limit.Undo(ctx, nil, "bank", act); return err },
	"limit.Open":          func(ctx context.Context) error { _, err := limit.Open(ctx, nil, "bank", act); return err },
	"limit.Delete":        func(ctx context.Context) error { return limit.Delete(ctx, nil, "bank", act) },
	"limit.KeyUses":       func(ctx context.Context) error { _, err := limit.KeyUses(ctx, nil, "host"); return err },
	"limit.CloseKeyUntil": func(ctx context.Context) error { return limit.CloseKeyUntil(ctx, nil, "host", "a", time.Now(), act) },
	"limit.Save": func(ctx context.Context) error {
		_, err := limit.Save(ctx, nil, limit.Limit{Name: "bank"}, act)
		return err
	},
	"limit.CloseKey": func(ctx context.Context) error { return limit.CloseKey(ctx, nil, "host", "a", time.Second, act) },
	"limit.OpenKey":  func(ctx context.Context) error { return limit.OpenKey(ctx, nil, "host", "a", act) },
	"limit.Given":    func(ctx context.Context) error { _, err := limit.Given(nil).Limits(ctx, nil); return err },
	"schedule.Read":  func(ctx context.Context) error { _, err := schedule.Read(ctx, nil, "s"); return err },
	"schedule.List":  func(ctx context.Context) error { _, err := schedule.List(ctx, nil, schedule.Filter{}); return err },
	"schedule.Results": func(ctx context.Context) error {
		fires := []schedule.Fire{{Job: sluice.NewID()}}
		_, err := schedule.Results(ctx, nil, schedule.Schedule{Progress: schedule.Progress{Recent: fires}})
		return err
	},
	"schedule.FireFor": func(ctx context.Context) error { _, err := schedule.FireFor(ctx, nil, "s", nil, act, nil); return err },
	"schedule.Save":    func(ctx context.Context) error { _, err := schedule.Save(ctx, nil, nightly, act); return err },
	"schedule.Trigger": func(ctx context.Context) error { _, err := schedule.Trigger(ctx, nil, "s", act, nil); return err },
	"schedule.Set":     func(ctx context.Context) error { _, err := schedule.Set(ctx, nil, "s", daily, act); return err },
	"schedule.Change":  func(ctx context.Context) error { _, err := schedule.Change(ctx, nil, "s", act, nil); return err },
	"schedule.Pause":   func(ctx context.Context) error { _, err := schedule.Pause(ctx, nil, "s", "", act); return err },
	"schedule.Resume":  func(ctx context.Context) error { _, err := schedule.Resume(ctx, nil, "s", act); return err },
	"schedule.Lift":    func(ctx context.Context) error { _, err := schedule.Lift(ctx, nil, "s", act); return err },
	"schedule.Undo":    func(ctx context.Context) error { _, err := schedule.Undo(ctx, nil, "s", act); return err },
	"schedule.Delete":  func(ctx context.Context) error { return schedule.Delete(ctx, nil, "s", act) },
	"schedule.Ensure": func(ctx context.Context) error {
		_, err := schedule.Ensure(ctx, nil, []schedule.Schedule{nightly}, act)
		return err
	},
	"schedule.Given": func(ctx context.Context) error { _, err := schedule.Given(nil).Schedule(ctx, "s"); return err },
	"operation.Given": func(ctx context.Context) error {
		_, err := operation.Given(nil).Operation(ctx, sluice.NewID())
		return err
	},
	"tenancy.List":       func(ctx context.Context) error { _, err := tenancy.List(ctx, nil, "", 0); return err },
	"tenancy.Tiers":      func(ctx context.Context) error { _, err := tenancy.Tiers(ctx, nil); return err },
	"tenancy.AddTier":    func(ctx context.Context) error { _, err := tenancy.AddTier(ctx, nil, "FREE", act); return err },
	"tenancy.SetTier":    func(ctx context.Context) error { _, err := tenancy.SetTier(ctx, nil, "x", "FREE", act); return err },
	"tenancy.LimitsOf":   func(ctx context.Context) error { _, err := tenancy.LimitsOf(ctx, nil, "", "x"); return err },
	"tenancy.Pause":      func(ctx context.Context) error { _, err := tenancy.Pause(ctx, nil, "", "x", 0, act); return err },
	"tenancy.Resume":     func(ctx context.Context) error { return tenancy.Resume(ctx, nil, "", "x", act) },
	"tenancy.Delete":     func(ctx context.Context) error { return tenancy.Delete(ctx, nil, "x", act) },
	"tenancy.DeleteTier": func(ctx context.Context) error { return tenancy.DeleteTier(ctx, nil, "FREE", act) },
	"tenancy.Given":      func(ctx context.Context) error { _, err := tenancy.Given(nil).Tenant(ctx, "x"); return err },
	"alert.Read":         func(ctx context.Context) error { _, err := alert.Read(ctx, nil); return err },
	"alert.Test":         func(ctx context.Context) error { return alert.Test(ctx, nil, "ann") },
	"alert.Given":        func(ctx context.Context) error { _, err := alert.Given(nil).AlertBook(ctx); return err },
	"alert.ResetRule":    func(ctx context.Context) error { return alert.ResetRule(ctx, nil, "x", "", act) },
	"alert.StartSilence": func(ctx context.Context) error { _, err := alert.StartSilence(ctx, nil, silence, act); return err },
	"alert.StopSilence":  func(ctx context.Context) error { return alert.StopSilence(ctx, nil, sluice.NewID(), act) },
	"alert.SetRule, store": func(ctx context.Context) error {
		_, _, err := alert.SetRule(ctx, nil, "x", "", act, func(*alert.Rule) error { return nil })
		return err
	},
	"audit.Of":          func(context.Context) error { _, err := audit.Of(nil); return err },
	"audit.Of, wrapped": func(context.Context) error { _, err := audit.Of(observe.Store(nil)); return err },
	"audit.Prune":       func(ctx context.Context) error { _, err := audit.Prune(ctx, nil, "x"); return err },
	"audit.SealSettled": func(ctx context.Context) error {
		_, err := audit.SealSettled(ctx, nil, audit.SealOptions{})
		return err
	},
	"audit.Keep":    func(ctx context.Context) error { _, err := audit.Keep(ctx, nil, nil, act); return err },
	"audit.Waiting": func(ctx context.Context) error { _, _, err := audit.Waiting(ctx, nil); return err },
	"audit.Verify":  func(ctx context.Context) error { _, err := audit.Verify(ctx, nil, audit.VerifyOptions{}); return err },
	"metric.NewGauges": func(context.Context) error {
		_, err := metric.NewGauges(nil, metric.Options{Registerer: prometheus.NewRegistry()})
		return err
	},
	"monitor.New":        func(context.Context) error { _, err := monitor.New(nil, monitor.Options{}); return err },
	"forward.StatusOf":   func(ctx context.Context) error { _, err := forward.StatusOf(ctx, nil, nil); return err },
	"store/postgres.New": func(ctx context.Context) error { _, err := postgres.New(ctx, nil, postgres.Options{}); return err },
	"store/sqlite.New":   func(ctx context.Context) error { _, err := sqlite.New(ctx, nil, sqlite.Options{}); return err },
	"store/postgres.CompleteTx": func(ctx context.Context) error {
		return postgres.CompleteTx(ctx, nil, &sluice.Claim{}, nil)
	},
	"store/postgres.CompleteSQLTx": func(ctx context.Context) error {
		return postgres.CompleteSQLTx(ctx, nil, &sluice.Claim{}, nil)
	},
	"store/sqlite.CompleteTx":   func(ctx context.Context) error { return sqlite.CompleteTx(ctx, nil, &sluice.Claim{}, nil) },
	"store/sqlite.CompleteTx 2": func(ctx context.Context) error { return sqlite.CompleteTx(ctx, &sql.Tx{}, nil, nil) },
	"store/memory.Watch":        func(ctx context.Context) error { return memory.New(memory.Options{}).Watch(ctx, nil) },
	"store/sqlite.Watch":        func(ctx context.Context) error { return (&sqlite.Store{}).Watch(ctx, nil) },
	"store/postgres.Watch":      func(ctx context.Context) error { return (&postgres.Store{}).Watch(ctx, nil) },
	"upkeep.Reconcile": func(ctx context.Context) error {
		return upkeep.New(memory.New(memory.Options{}), upkeep.Options{}).Reconcile(ctx, upkeep.Reconciliation{}, nil)
	},
	"engine/temporal.RunSchedules": func(ctx context.Context) error {
		return temporal.New(nil, temporal.Options{}).RunSchedules(ctx, temporal.Schedules{Queues: []string{"x"}})
	},
	"api.StoreAnswers": func(ctx context.Context) error { _, err := api.StoreAnswers(nil).Examine(ctx); return err },
	"api.Led":          func(ctx context.Context) error { _, err := api.Led(nil).Examine(ctx); return err },
	"api.Beats":        func(ctx context.Context) error { _, err := api.Beats("x", nil).Examine(ctx); return err },
	"api.NoConditions": func(ctx context.Context) error { _, err := api.NoConditions("x", nil).Examine(ctx); return err },
	"api.EngineAnswers": func(ctx context.Context) error {
		_, err := api.EngineAnswers(nil, map[string]engine.Engine{"x": engine.GivenEngine(nil)}).Examine(ctx)
		return err
	},
	"api.Serve":          func(ctx context.Context) error { return api.Serve(ctx, nil, http.NotFoundHandler(), nil) },
	"api.Serve, handler": func(ctx context.Context) error { return api.Serve(ctx, &net.TCPListener{}, nil, nil) },
}

var act = sluice.Act{By: "x", Reason: "x"}

func clientWithQueue(ctx context.Context) *sluice.Client {
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	if _, err := client.EnsureQueue(ctx, "x", sluice.DefaultSettings(), act); err != nil {
		panic(err)
	}
	return client
}

func TestWhatIsMadeOfNilSaysSo(t *testing.T) {
	t.Parallel()
	for name, value := range values() {
		errs := verbtest.CallAny(t.Context(), value, func(method string, panicked any) { t.Errorf("%s: %s panics: %v", name, method, panicked) })
		if len(errs) == 0 {
			t.Errorf("%s: nothing was called", name)
		}
		for method, err := range errs {
			if !errors.Is(err, sluice.ErrInvalid) {
				t.Errorf("%s: %s gives %v, want an ErrInvalid", name, method, err)
			}
		}
	}
}

func TestCallsThatAreGivenNilSaySo(t *testing.T) {
	t.Parallel()
	for name, call := range calls {
		if err := call(t.Context()); !errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), "is nil: make one, and pass it") {
			t.Errorf("%s gives %v, want an ErrInvalid", name, err)
		}
	}
	for _, call := range harmless {
		call()
	}
}

// TestEveryFunctionThatMayBeGivenNilIsCalled looks for exported functions that take a port, a handler or a function.
// Each must be in one of the tables.
func TestEveryFunctionThatMayBeGivenNilIsCalled(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	note := func(name string) { known[strings.Fields(strings.TrimSuffix(name, ","))[0]] = true }
	for name := range values() {
		note(strings.ReplaceAll(name, ",", ""))
	}
	for name := range calls {
		note(strings.ReplaceAll(name, ",", ""))
	}
	for name := range harmless {
		note(name)
	}
	err := filepath.WalkDir(filepath.Join("..", "..", ".."), func(path string, entry fs.DirEntry, err error) error {
		dir := strings.TrimPrefix(filepath.ToSlash(path), "../../../")
		if err == nil && entry.IsDir() && slices.Contains([]string{"internal", "cmd/internal", "apps", "bench", "compat", "deploy", "tools", ".git", "docs", "store/storetest", "engine/enginetest"}, dir) {
			return filepath.SkipDir
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		in := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(dir)), "cmd/")
		if in == "." {
			in = "sluice"
		}
		for _, declared := range file.Decls {
			if f, is := declared.(*ast.FuncDecl); is && f.Recv == nil && f.Name.IsExported() && mayBeNil(f) && !known[in+"."+f.Name.Name] {
				t.Errorf("%s.%s takes what may be nil, and no test gives it nil", in, f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// errOf returns the error of a call that also returns a value.
func errOf[T any](_ T, err error) error { return err }
