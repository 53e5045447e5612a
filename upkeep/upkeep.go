// Package upkeep does the maintenance of a store, without which dead workers' jobs would wait for ever.
//
// Upkeep recovers jobs whose lease ran out, fires schedules, completes batches, cancels expired jobs, repairs orphans and follows the
// runs of engines to their end. Upkeep also applies scheduled changes of settings, carries out operations, counts
// forecasts, adds up statistics, evaluates alerts, seals the audit and prunes history.
//
// Begin with [New] and [Upkeep.Run]; [Upkeep.Once] does a single round, for tests and schedules of your own.
// Any number of upkeeps may run: one leads each task, and the others stand by. To follow the runs at an engine
// is a task of its own, only for upkeeps that have the engine in their [Options]. All upkeeps fire schedules.
//
// Next, read docs/operate.md; for engines docs/guide/follow.md, and for notifications package alert.
package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/obey"
	"github.com/sluice-queue/sluice/internal/safe"
	"github.com/sluice-queue/sluice/internal/scrubbed"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/step"
)

// Options adjust an [Upkeep]. The zero value works.
type Options struct {
	// Interval is how often upkeep checks whether a task is due, or the recover_interval of a queue. Default 1
	// s.
	Interval time.Duration
	// ExpireBatch is the most expired jobs cancelled in one round. Default 1,000.
	ExpireBatch int
	// RepairInterval is how often upkeep repairs orphans. Default 10 s.
	RepairInterval time.Duration
	// PruneInterval is the pause after pruning has deleted all history that is too old. PruneBatch is the most
	// jobs deleted in one transaction. Between transactions, pruning rests for as long as the last one took, 20
	// ms at most. Defaults 1 m and 1,000.
	PruneInterval time.Duration
	PruneBatch    int
	// PayloadChecker finds an invalid payload_schema that was stored by plain SQL, and refuses payloads of schedules
	// that do not match theirs. Without one, upkeep records such a schema like any other change, and only workers
	// check the payloads. Default: none.
	PayloadChecker sluice.PayloadChecker
	// WavesInterval is how often upkeep counts forecasts. Counting takes at most a fiftieth of the time, so
	// slow counts are less frequent. Default 10 s.
	WavesInterval time.Duration
	// Engines are the engines whose runs upkeep follows, by the names used in the queues' setting `engine`.
	// Default: none; jobs that dispatchers handed over then stay dispatched.
	Engines map[string]engine.Engine
	// AlertInterval is how often the leading upkeep evaluates the rules of alerts; negative: never. An
	// evaluation is a few bounded reads per queue. Default 15 s.
	AlertInterval time.Duration
	// SealInterval is how long entries of the audit wait for a seal; 10,000 entries are sealed at once. The
	// leading upkeep seals, in at most a thirtieth of the time. If more is written than fits, entries wait
	// longer. Default 1 m.
	SealInterval time.Duration
	// HeadInterval is how often Receivers get the head of the audit's chain, if anything was sealed; negative:
	// never. The log gets a changed head every 10 minutes in any case. Default 24 h.
	HeadInterval time.Duration
	// Receivers are notified of alerts by this process, even if another upkeep leads. An unreachable receiver
	// is notified once it is back, and delays no other. Default: none; the log and the audit record alerts in
	// any case.
	Receivers []alert.Receiver
	// Version is the version of your program, by which `sluice holders` chooses processes. Default:
	// [presence.ProgramVersion].
	Version string
	// Logger gets one line per event; see docs/events.md. Default: slog.Default.
	Logger *slog.Logger
	// LogLimit is how many lines of an event upkeep logs for one queue within 10 s. Beyond the limit, it logs
	// only their number. Default 10; negative: all lines.
	LogLimit int
	// Scrub removes secrets and personal data from errors, stacks and reasons before they are stored or logged.
	// A scrub.Scrubber may keep some families; scrub.Nothing keeps all. Default: scrub.Text.
	Scrub func(text string) string
}

// Upkeep does the maintenance of a store. [Upkeep.Run] does the work.
type Upkeep struct {
	store   sluice.Store
	client  *sluice.Client
	options Options
	wrong   error // the error in the options
	running safe.Running
	log     *event.Log
	ear     *obey.Ear
	holder  presence.Holder

	recovered  map[string]time.Time // when each queue was last recovered
	repaired   time.Time
	folded     time.Time
	beaten     time.Time
	told       []presence.Condition // conditions in the last heartbeat
	loggedMode presence.Mode        // mode in the last heartbeat
	refused    map[string]bool      // scheduled changes that cannot be applied, as logged
	waves      counting
	sealing    sealing
	pruning    pruning
	alerts     alerting
	runs       followers

	operations operating
	firing     firing
	advancing  firing
	standing   standing

	tasks        []string // tasks that it can do
	unfollowedAt time.Time
	differ       string // the processes of other protocols, as logged
}

// Done counts the results of one round.
type Done struct {
	// Recovered jobs wait again, Poisoned jobs were buried, Expired jobs were cancelled.
	Recovered int `json:"recovered"`
	Poisoned  int `json:"poisoned"`
	Expired   int `json:"expired"`
	// Repaired counts repaired orphans, Pruned counts deleted lives of finished jobs.
	Repaired int `json:"repaired"`
	Pruned   int `json:"pruned"`
	// Followed counts jobs settled by the outcome of their runs.
	Followed int `json:"followed"`
	// Settings counts changes of settings: scheduled changes applied now, and changes by plain SQL recorded
	// now.
	Settings int `json:"settings"`
	// Operated counts jobs on which operations acted.
	Operated int `json:"operated"`
	// Fired counts jobs that schedules made.
	Fired int `json:"fired"`
	// Flows counts steps of flows: maps that made or ended their jobs, and ends of flows.
	Flows int `json:"flows"`
	// Called counts jobs that batches enqueued as callbacks.
	Called int `json:"called"`
	// Alerts counts changes of alerts that receivers are notified of.
	Alerts int `json:"alerts"`
}

// jobs returns the number of jobs that the round acted on.
func (d Done) jobs() int {
	return d.Recovered + d.Poisoned + d.Expired + d.Repaired + d.Pruned + d.Followed + d.Operated
}

// New makes an upkeep of a store. New does not access the store.
func New(store sluice.Store, options Options) *Upkeep {
	wrong := safe.Options(options, "LogLimit", "AlertInterval", "HeadInterval")
	defaultTo(&options.Interval, time.Second)
	defaultTo(&options.ExpireBatch, 1000)
	defaultTo(&options.RepairInterval, 10*time.Second)
	defaultTo(&options.PruneInterval, time.Minute)
	defaultTo(&options.PruneBatch, 1000)
	defaultTo(&options.WavesInterval, 10*time.Second)
	defaultTo(&options.SealInterval, time.Minute)
	if options.HeadInterval == 0 {
		options.HeadInterval = 24 * time.Hour
	}
	if options.AlertInterval == 0 {
		options.AlertInterval = 15 * time.Second
	}
	options.Logger = scrubbed.Logger(options.Logger, options.Scrub)
	options.Engines = scrubbed.Engines(options.Engines, options.Scrub)
	options.PayloadChecker = safe.Checker(options.PayloadChecker)
	options.Receivers = listeningAll(options.Receivers, options.Scrub)
	store = scrubbed.Store(store, options.Scrub)
	holder := presence.NewID()
	log := event.NewLog(options.Logger, holder, options.LogLimit)
	return &Upkeep{
		store: store, client: sluice.NewClient(store, sluice.ClientOptions{PayloadChecker: options.PayloadChecker, Logger: options.Logger}),
		options: options, wrong: wrong, log: log, ear: obey.New(log),
		holder:    presence.Holder{ID: holder, Role: presence.RoleUpkeep, Version: cmp.Or(options.Version, presence.ProgramVersion()), Protocol: presence.Protocol},
		recovered: make(map[string]time.Time), waves: counting{ended: make(chan time.Time, 1)},
		sealing: sealing{work: newBeside()}, pruning: pruning{work: newBeside()},
		runs: followers{queues: make(map[string]*follower)}, tasks: tasksOf(options.Engines),
		alerts: newAlerting(alert.New(store, alert.Options{
			Receivers: options.Receivers, Holder: holder, Logger: options.Logger, LogLimit: options.LogLimit,
		})),
	}
}

func defaultTo[T int | time.Duration](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

// Run does the maintenance of the store until ctx ends, and then returns nil. Its tasks are upkeep itself and
// following the runs at each of its engines. Run performs the tasks that it leads, and stands by for the
// others. A lead is a row with a lease of 10 intervals, at least 2 s, which Run renews in every round. Run logs
// errors of the store and retries in the next round.
//
// If somebody tells the process to stop, Run ends too, and returns a [presence.StoppedError]. Told to quiesce, Run
// gives up its leads and does nothing until somebody lifts that.
func (u *Upkeep) Run(ctx context.Context) error {
	if err := cmp.Or(sluice.CheckGiven("store", u.store), u.wrong); err != nil {
		return fmt.Errorf("upkeep: %w", err)
	}
	end, err := u.running.Begin()
	if err != nil {
		return fmt.Errorf("upkeep: %w", err)
	}
	defer end()
	ctx, stop := u.ear.Obeying(ctx)
	defer stop(nil)
	ticker := time.NewTicker(u.options.Interval)
	defer ticker.Stop()
	var led leads
	defer u.log.Flush()
	defer u.waves.wait()
	defer u.sealing.all.Wait()
	defer u.pruning.all.Wait()
	defer u.operations.wait()
	defer u.firing.end()
	defer u.advancing.end()
	defer u.alerts.watcher.Flush()
	defer u.alerts.all.Wait()
	defer u.runs.all.Wait()
	u.hear(ctx, u.conditions()) // before the first work: the process may have been told to quiesce
	for {
		if u.ear.Quiesced() {
			led = u.resign(ctx, led)
		} else {
			u.fireBeside(ctx)
			led = u.elect(ctx, led)
			u.workOn(ctx, led)
		}
		u.beat(ctx)
		select {
		case <-ctx.Done():
			u.leave(ctx)
			return obey.Stopped(ctx)
		case <-ticker.C:
		}
	}
}

// workOn does the work of the tasks that this upkeep leads.
func (u *Upkeep) workOn(ctx context.Context, led leads) {
	var queues []sluice.Queue
	if led[presence.TaskUpkeep] {
		queues = u.round(ctx)
		u.countBeside(ctx)
		u.sealBeside(ctx)
		u.pruneBeside(ctx)
		u.operateBeside(ctx)
	}
	u.advanceBeside(ctx, led[presence.TaskUpkeep])
	u.followBeside(ctx, queues, u.engines(led))
	u.alertBeside(ctx, led[presence.TaskUpkeep])
	u.lookUnfollowed(ctx, led)
}

// round does the work that is due now, and logs it. The result is the queues, so that they are read once a
// round.
func (u *Upkeep) round(ctx context.Context) []sluice.Queue {
	queues, done, err := u.tend(ctx, false)
	if err := u.withoutPlans(ctx, err); err != nil {
		u.failed(ctx, "round", err)
	}
	u.logDone(done)
	return queues
}

func (u *Upkeep) logDone(done Done) {
	if done == (Done{}) {
		return
	}
	u.log.Emit(event.UpkeepDone, "", "recovered", done.Recovered, "poisoned", done.Poisoned,
		"expired", done.Expired, "followed", done.Followed, "repaired", done.Repaired, "pruned", done.Pruned, "settings", done.Settings)
}

func (u *Upkeep) failed(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		u.log.Emit(event.UpkeepFailed, "", "what", what, "error", err)
	}
}

// Once does the work that is due now; with all, it does all work, due or not. If one task fails, Once still
// does the others.
func (u *Upkeep) Once(ctx context.Context, all bool) (Done, error) {
	defer u.log.Flush()
	_, done, err := u.tend(ctx, all)
	return done, errors.Join(err, u.fireAll(ctx, &done), u.advanceAll(ctx, all, &done))
}

// tend applies scheduled changes, records changes by plain SQL, and then does the rest for the queues.
func (u *Upkeep) tend(ctx context.Context, all bool) (queues []sluice.Queue, done Done, err error) {
	ctx, end := step.Begin(ctx, u.store, step.Step{Name: step.Upkeep})
	defer func() { end(step.End{Jobs: done.jobs(), Err: err}) }()
	queues, done.Settings, err = u.tendSettings(ctx)
	return queues, done, errors.Join(
		err,
		u.recover(ctx, queues, all, &done),
		u.followIf(ctx, queues, all, &done),
		u.expire(ctx, all, &done),
		u.repair(ctx, all, &done),
		u.pruneIf(ctx, all, &done),
		u.foldStats(ctx, all),
		u.countIf(ctx, all),
		u.operateIf(ctx, all, &done),
		u.flowsGoOn(ctx, &done),
		u.alertIf(ctx, all, &done),
		u.sealIf(ctx, all),
	)
}

// recover looks for leases that ran out, in each queue as often as its settings say.
func (u *Upkeep) recover(ctx context.Context, queues []sluice.Queue, all bool, done *Done) error {
	var failed []error
	for _, q := range queues {
		if !all && time.Since(u.recovered[q.Name]) < q.Settings.RecoverInterval {
			continue
		}
		u.recovered[q.Name] = time.Now()
		for more := true; more; {
			out, err := u.store.Recover(ctx, q.Name, q.Settings.RecoverBatch, u.holder.ID)
			done.Recovered += out.Requeued
			done.Poisoned += out.Buried
			if err != nil {
				failed = append(failed, fmt.Errorf("recover queue %q: %w", q.Name, err))
			}
			if out != (sluice.Recovered{}) {
				u.log.Emit(event.JobsRecovered, q.Name, "requeued", out.Requeued, "buried", out.Buried)
			}
			recovered := out.Requeued + out.Buried
			more = all && err == nil && recovered > 0 && recovered >= q.Settings.RecoverBatch
		}
	}
	return errors.Join(failed...)
}

// expire cancels a batch of expired jobs, with all every one.
func (u *Upkeep) expire(ctx context.Context, all bool, done *Done) error {
	for more := true; more; {
		expired, err := u.store.Expire(ctx, u.options.ExpireBatch, u.holder.ID)
		if err != nil {
			return fmt.Errorf("expire: %w", err)
		}
		done.Expired += expired
		more = all && expired >= u.options.ExpireBatch
	}
	return nil
}

func (u *Upkeep) repair(ctx context.Context, all bool, done *Done) error {
	if !all && time.Since(u.repaired) < u.options.RepairInterval {
		return nil
	}
	u.repaired = time.Now()
	var err error
	if done.Repaired, err = u.store.Repair(ctx, u.holder.ID); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	return nil
}

// beatInterval is how often upkeep writes its heartbeat to the store.
const beatInterval = 5 * time.Second

// beat writes upkeep's heartbeat, at once if its conditions or its mode have changed.
func (u *Upkeep) beat(ctx context.Context) {
	conditions, mode := u.conditions(), u.ear.Mode()
	if time.Since(u.beaten) < beatInterval && slices.Equal(conditions, u.told) && mode == u.loggedMode {
		return
	}
	u.beaten, u.told, u.loggedMode = time.Now(), conditions, mode
	if u.hear(ctx, conditions) {
		u.standing.beat() // after a round: an upkeep that has not worked yet is not ready
	}
}

// hear sends a heartbeat and hears the instruction that the store answers with.
func (u *Upkeep) hear(ctx context.Context, conditions []presence.Condition) bool {
	holder := u.holder
	holder.Conditions, holder.Mode = conditions, u.ear.Mode()
	told, err := presence.Given(u.store).Heartbeat(ctx, holder)
	if err != nil {
		u.failed(ctx, "beat", err)
		return false
	}
	u.ear.Hear(told)
	return true
}

func (u *Upkeep) leave(ctx context.Context) {
	if err := presence.Given(u.store).Deregister(context.WithoutCancel(ctx), u.holder.ID); err != nil {
		u.log.Emit(event.NotForgotten, "", "error", err)
	}
}
