// Package upkeep tends what nobody else looks after: it carries out planned changes of settings, recovers
// jobs whose lease ran out, follows the runs of engines to their end, cancels jobs that expired, mends what was
// orphaned, counts what falls due, adds up statistics, carries out operations, looks at alerts, seals the audit, and prunes history. Any
// number may run: for each task one leads, and the others stand by. Following the runs at an engine is a task of its own,
// which only those can lead that were given the engine.
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
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/safe"
	"github.com/sluice-queue/sluice/internal/scrubbed"
)

// Options adjust an Upkeep. The zero value works.
type Options struct {
	// Interval is how often upkeep looks whether something is due: its own tasks, and the
	// recover_interval of each queue. Default 1 s.
	Interval time.Duration
	// ExpireBatch is how many expired jobs are cancelled at one look. Default 1,000.
	ExpireBatch int
	// MendInterval is how often orphans are looked for. Default 10 s.
	MendInterval time.Duration
	// PruneInterval is how long pruning rests when it has deleted all that is too old, PruneBatch how many jobs it deletes
	// in one transaction at the most. While there is more, it rests after each transaction for as long as that took, and
	// 20 ms at the most. Defaults 1 m and 1,000.
	PruneInterval time.Duration
	PruneBatch    int
	// PayloadChecker finds a payload_schema that was stored by plain SQL and is none. Without one, it is
	// told as a change like others. Default: none.
	PayloadChecker sluice.PayloadChecker
	// WavesInterval is how often what falls due ahead is counted, where that is quick: counting takes
	// at most a fiftieth of the time. Default 10 s.
	WavesInterval time.Duration
	// Engines are those whose runs are followed, by the names that the setting `engine` of queues has for them.
	// Default: none; jobs that dispatchers handed over stay dispatched then.
	Engines map[string]sluice.Engine
	// AlertInterval is how often the rules of alerts are looked at, by the upkeep that leads; negative: never. A look is
	// a few bounded reads for each queue. Default 15 s.
	AlertInterval time.Duration
	// SealInterval is how long entries of the audit wait for a seal; 10,000 of them are sealed at once. The upkeep that leads
	// seals, in at most a thirtieth of the time: where more is written than that is enough for, entries wait longer.
	// Default 1 m.
	SealInterval time.Duration
	// HeadInterval is how often Receivers are told of the head of the audit's chain, if anything was sealed; negative:
	// never. The log is told every ten minutes. Default 24 h.
	HeadInterval time.Duration
	// Receivers are told of alerts, by this process, whoever leads. One that is down is told once it is back, and holds
	// nothing up. Default: none; the log and the audit are always told.
	Receivers []alert.Receiver
	// Logger gets one line per event; see docs/events.md. Default: slog.Default.
	Logger *slog.Logger
	// LogLimit is how many lines of an event are logged for one queue within 10 s; of those beyond it only the number is.
	// Default 10, negative: all.
	LogLimit int
	// Scrub removes secrets and personal data from errors, stacks and reasons before they are stored or logged. That
	// of a scrub.Scrubber may leave some in, scrub.Nothing leaves all. Default: scrub.Text.
	Scrub func(text string) string
}

// Upkeep tends a store. Run does the work.
type Upkeep struct {
	store   sluice.Store
	client  *sluice.Client
	options Options
	wrong   error // with the options
	running safe.Running
	log     *event.Log
	holder  sluice.Holder

	recovered map[string]time.Time // when each queue was last looked at
	mended    time.Time
	folded    time.Time
	beaten    time.Time
	told      []sluice.Condition // with the last beat
	refused   map[string]bool    // the plans that cannot be carried out, as they were logged
	waves     counting
	sealing   sealing
	pruning   pruning
	alerts    alerting
	runs      followers

	operations operating
	standing   standing

	tasks        []string // that it can do
	unfollowedAt time.Time
}

// Done counts what one round did.
type Done struct {
	// Recovered jobs wait again, Poisoned ones were buried, Expired ones cancelled.
	Recovered int `json:"recovered"`
	Poisoned  int `json:"poisoned"`
	Expired   int `json:"expired"`
	// Mended counts orphans set right, Pruned finished lives deleted.
	Mended int `json:"mended"`
	Pruned int `json:"pruned"`
	// Followed counts jobs that were settled by what became of their runs.
	Followed int `json:"followed"`
	// Settings counts changes of settings that were planned and are made now, or that were made by plain SQL
	// and are told now.
	Settings int `json:"settings"`
	// Operated counts jobs on which operations acted.
	Operated int `json:"operated"`
	// Alerts counts changes of alerts that people are told of.
	Alerts int `json:"alerts"`
}

// jobs is how many jobs the round was about.
func (d Done) jobs() int {
	return d.Recovered + d.Poisoned + d.Expired + d.Mended + d.Pruned + d.Followed + d.Operated
}

// New makes an upkeep of a store. It does no reading or writing itself.
func New(store sluice.Store, options Options) *Upkeep {
	wrong := safe.Options(options, "LogLimit", "AlertInterval", "HeadInterval")
	defaultTo(&options.Interval, time.Second)
	defaultTo(&options.ExpireBatch, 1000)
	defaultTo(&options.MendInterval, 10*time.Second)
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
	options.Receivers = listeningAll(options.Receivers, options.Scrub)
	store = scrubbed.Store(store, options.Scrub)
	holder := sluice.NewHolderID()
	return &Upkeep{
		store: store, client: sluice.NewClient(store, sluice.ClientOptions{PayloadChecker: options.PayloadChecker, Logger: options.Logger}),
		options: options, wrong: wrong, log: event.NewLog(options.Logger, holder, options.LogLimit), holder: sluice.Holder{ID: holder, Role: sluice.RoleUpkeep},
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

// Run tends the store until ctx ends, and returns nil then. It does what it leads and stands by for the rest: upkeep
// itself, and following the runs at each engine that it was given. A lead is a row with a lease of ten intervals, 2 s at
// the least, which is renewed as long as the rounds go on. Faults of the store are logged, and tried again at the next look.
func (u *Upkeep) Run(ctx context.Context) error {
	if err := cmp.Or(sluice.CheckGiven("store", u.store), u.wrong); err != nil {
		return fmt.Errorf("upkeep: %w", err)
	}
	end, err := u.running.Begin()
	if err != nil {
		return fmt.Errorf("upkeep: %w", err)
	}
	defer end()
	ticker := time.NewTicker(u.options.Interval)
	defer ticker.Stop()
	var led leads
	defer u.log.Flush()
	defer u.waves.wait()
	defer u.sealing.all.Wait()
	defer u.pruning.all.Wait()
	defer u.operations.wait()
	defer u.alerts.watcher.Flush()
	defer u.alerts.all.Wait()
	defer u.runs.all.Wait()
	for {
		led = u.elect(ctx, led)
		var queues []sluice.Queue
		if led[sluice.TaskUpkeep] {
			queues = u.round(ctx)
			u.countBeside(ctx)
			u.sealBeside(ctx)
			u.pruneBeside(ctx)
			u.operateBeside(ctx)
		}
		u.followBeside(ctx, queues, u.engines(led))
		u.alertBeside(ctx, led[sluice.TaskUpkeep])
		u.lookUnfollowed(ctx, led)
		u.beat(ctx)
		select {
		case <-ctx.Done():
			return u.leave(ctx)
		case <-ticker.C:
		}
	}
}

// round does what is due now, and logs it. It gives the queues as it found them, so that they are read once a round.
func (u *Upkeep) round(ctx context.Context) []sluice.Queue {
	queues, done, err := u.tend(ctx, false)
	if err := u.withoutPlans(ctx, err); err != nil {
		u.failed(ctx, "round", err)
	}
	u.tellDone(done)
	return queues
}

func (u *Upkeep) tellDone(done Done) {
	if done == (Done{}) {
		return
	}
	u.log.Tell(event.UpkeepDone, "", "recovered", done.Recovered, "poisoned", done.Poisoned,
		"expired", done.Expired, "followed", done.Followed, "mended", done.Mended, "pruned", done.Pruned, "settings", done.Settings)
}

func (u *Upkeep) failed(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		u.log.Tell(event.UpkeepFailed, "", "what", what, "error", err)
	}
}

// Once does what is due now; with all, everything, whether it is due or not. A task that fails does
// not keep the others from being done.
func (u *Upkeep) Once(ctx context.Context, all bool) (Done, error) {
	defer u.log.Flush()
	_, done, err := u.tend(ctx, all)
	return done, err
}

// tend carries out plans, tells of what plain SQL changed, and does the rest for the queues as they are then.
func (u *Upkeep) tend(ctx context.Context, all bool) (queues []sluice.Queue, done Done, err error) {
	ctx, end := sluice.BeginStep(ctx, u.store, sluice.Step{Name: sluice.StepUpkeep})
	defer func() { end(sluice.StepEnd{Jobs: done.jobs(), Err: err}) }()
	queues, done.Settings, err = u.client.TendSettings(ctx, u.holder.ID)
	return queues, done, errors.Join(
		err,
		u.recover(ctx, queues, all, &done),
		u.followIf(ctx, queues, all, &done),
		u.expire(ctx, &done),
		u.mend(ctx, all, &done),
		u.pruneIf(ctx, all, &done),
		u.foldStats(ctx, all),
		u.countIf(ctx, all),
		u.operateIf(ctx, all, &done),
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
		out, err := u.store.Recover(ctx, q.Name, q.Settings.RecoverBatch, u.holder.ID)
		done.Recovered += out.Requeued
		done.Poisoned += out.Buried
		if err != nil {
			failed = append(failed, fmt.Errorf("recover queue %q: %w", q.Name, err))
		}
		if out != (sluice.Recovered{}) {
			u.log.Tell(event.JobsRecovered, q.Name, "requeued", out.Requeued, "buried", out.Buried)
		}
	}
	return errors.Join(failed...)
}

func (u *Upkeep) expire(ctx context.Context, done *Done) error {
	var err error
	if done.Expired, err = u.store.Expire(ctx, u.options.ExpireBatch, u.holder.ID); err != nil {
		return fmt.Errorf("expire: %w", err)
	}
	return nil
}

func (u *Upkeep) mend(ctx context.Context, all bool, done *Done) error {
	if !all && time.Since(u.mended) < u.options.MendInterval {
		return nil
	}
	u.mended = time.Now()
	var err error
	if done.Mended, err = u.store.Mend(ctx, u.holder.ID); err != nil {
		return fmt.Errorf("mend: %w", err)
	}
	return nil
}

// beatInterval is how often upkeep tells the store that it is alive.
const beatInterval = 5 * time.Second

// beat tells the store that upkeep is alive, and at once what has begun to keep it from its work, or does no longer.
func (u *Upkeep) beat(ctx context.Context) {
	holder := u.holder
	holder.Conditions = u.conditions()
	if time.Since(u.beaten) < beatInterval && slices.Equal(holder.Conditions, u.told) {
		return
	}
	u.beaten, u.told = time.Now(), holder.Conditions
	if err := u.store.Beat(ctx, holder); err != nil {
		u.failed(ctx, "beat", err)
		return
	}
	u.standing.beat()
}

func (u *Upkeep) leave(ctx context.Context) error {
	if err := u.store.Leave(context.WithoutCancel(ctx), u.holder.ID); err != nil {
		u.log.Tell(event.NotForgotten, "", "error", err)
	}
	return nil
}
