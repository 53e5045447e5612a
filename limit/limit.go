// Package limit keeps named limits: one rate and one concurrency that several queues share, such as the rate of a bank
// for payments and refunds.
//
// Begin with [Change], which makes a limit or changes it. A queue takes part in the limits that its setting limits
// names. [Close] stops every queue of a limit, and [Uses] says how much of each limit is in use.
//
// A limit is as exact as the limits of one queue: its concurrency counts every job that is claimed or dispatched in its
// queues, and its rate holds in every window, over all processes.
//
// Read next: docs/guide/limits.md.
package limit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Limit is a named limit. The zero figures limit nothing.
type Limit struct {
	// Name is the name by which the setting limits of a queue names the limit, such as bank.
	Name string `json:"name"`
	// Concurrency is the most jobs of all its queues that may be claimed or dispatched at the same time. 0: no limit.
	Concurrency int `json:"concurrency"`
	// Rate is how many jobs of all its queues may start per time. Zero: no limit. Burst is how many more may start in
	// one window, and at once after a lull.
	Rate  sluice.Rate `json:"rate"`
	Burst int         `json:"burst"`
	// PerKey makes the figures count for each limit key of jobs apart, such as for each host. Jobs without a limit key are
	// not bounded. The rate counts claims then.
	PerKey bool `json:"per_key"`
	// ByCost makes the figures count the costs of jobs, such as tokens; otherwise each job counts 1. A job that costs more than
	// the whole limit has to wait until nothing else counts, and then passes alone. The rate counts claims then.
	ByCost bool `json:"by_cost"`
	// Closed stops the claims of all its queues until ClosedUntil. Zero ClosedUntil: until somebody opens the limit.
	Closed      bool      `json:"closed"`
	ClosedUntil time.Time `json:"closed_until,omitzero"`

	// Version counts the changes. 0: not stored yet.
	Version int64 `json:"-"`
	// ChangedAt, ChangedBy and Reason describe the last change.
	ChangedAt time.Time `json:"-"`
	ChangedBy string    `json:"-"`
	Reason    string    `json:"-"`
}

// Use says how much of a limit is in use.
type Use struct {
	// Limit is the limit.
	Limit Limit
	// Queues are the queues whose setting limits names the limit, by name.
	Queues []string
	// InFlight counts their claimed and dispatched jobs and their orphan runs, at most [MaxFigure].
	InFlight int
	// Wait is how long until the rate lets a job start. 0: now, or there is no rate.
	Wait time.Duration
}

// MaxFigure is the largest concurrency, burst and rate per second.
const MaxFigure = 1_000_000

// errUnknown says that a store has no limit of a name. A store without limits returns another ErrNotFound.
var errUnknown = fmt.Errorf("%w", sluice.ErrNotFound)

// errClosedLonger says that a limit is closed for longer already.
var errClosedLonger = errors.New("closed for longer")

// closeSlack is how much earlier a limit may open without a write that prolongs its close. So a hundred callers at the
// same moment write once.
const closeSlack = time.Second

// ClosedAt reports whether the limit is closed at an instant.
func (l Limit) ClosedAt(now time.Time) bool {
	return l.Closed && (l.ClosedUntil.IsZero() || l.ClosedUntil.After(now))
}

// String returns the figures as people write them, such as rate=500/5s burst=100 concurrency=20.
func (l Limit) String() string {
	var parts []string
	if !l.Rate.IsZero() {
		parts = append(parts, "rate="+l.Rate.String())
	}
	if l.Burst > 0 {
		parts = append(parts, "burst="+strconv.Itoa(l.Burst))
	}
	if l.Concurrency > 0 {
		parts = append(parts, "concurrency="+strconv.Itoa(l.Concurrency))
	}
	if l.PerKey {
		parts = append(parts, "per=key")
	}
	if l.ByCost {
		parts = append(parts, "units=cost")
	}
	if len(parts) == 0 {
		return "no figures"
	}
	return strings.Join(parts, " ")
}

// Check returns the rule that the limit breaks, as a [sluice.ErrInvalid].
func (l Limit) Check() error {
	if err := checkName(l.Name); err != nil {
		return err
	}
	for _, figure := range []struct {
		name  string
		value int
	}{{"concurrency", l.Concurrency}, {"burst", l.Burst}} {
		if figure.value < 0 || figure.value > MaxFigure {
			return feature.Invalid(figure.name, fmt.Sprintf("%d must be from 0 to %d", figure.value, MaxFigure))
		}
	}
	if !l.Rate.Fits() {
		return feature.Invalid("rate", fmt.Sprintf("%s must be from 0 to %d/s, of at least one job in whole milliseconds", l.Rate, MaxFigure))
	}
	return feature.CheckInstant("closed_until", l.ClosedUntil)
}

// checkName returns a [sluice.ErrInvalid] if a limit must not have this name.
func checkName(name string) error {
	if sluice.CheckQueueName(name) != nil {
		return feature.Invalid("name", fmt.Sprintf("%.80q must be 1 to 64 letters, digits and . _ : -, the first a letter or a digit", name))
	}
	return nil
}

// Set reads a figure as a person writes it. Name is concurrency, rate, burst, per,
// whose text is key, or units, whose text is cost; another name is a [sluice.ErrNotFound]. An empty text or 0 removes the figure.
func (l *Limit) Set(name, text string) error {
	var err error
	switch {
	case name == "rate" && text == "":
		l.Rate = sluice.Rate{}
	case name == "rate":
		l.Rate, err = sluice.ParseRate(text)
	case name == "per" && (text == "key" || text == ""):
		l.PerKey = text == "key"
	case name == "units" && (text == "cost" || text == ""):
		l.ByCost = text == "cost"
	case name == "units":
		err = fmt.Errorf("%.60q must be cost, or empty", text)
	case name == "per":
		err = fmt.Errorf("%.60q must be key, or empty", text)
	case name == "concurrency":
		l.Concurrency, err = parseCount(text)
	case name == "burst":
		l.Burst, err = parseCount(text)
	default:
		return fmt.Errorf("figure %.60q: %w; there are: concurrency, rate, burst, per, units", name, sluice.ErrNotFound)
	}
	if err != nil {
		return feature.Invalid(name, err.Error())
	}
	return nil
}

// parseCount reads a whole number. An empty text is 0.
func parseCount(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%.60q is not a whole number", text)
	}
	return n, nil
}

// Names returns the names in the setting limits of a queue, sorted, each once. Claims lock the limits in this order.
func Names(setting string) []string {
	if setting == "" {
		return nil
	}
	names := strings.Split(setting, ",")
	slices.Sort(names)
	return slices.Compact(names)
}

// Read returns a limit. An unknown name is a [sluice.ErrNotFound].
func Read(ctx context.Context, store sluice.Store, name string) (Limit, error) {
	found, err := Given(store).Limits(ctx, []string{name})
	switch {
	case err != nil:
		return Limit{}, err
	case len(found) == 0:
		return Limit{}, fmt.Errorf("limit %.80q: %w; run `sluice limits ls` for the names", name, errUnknown)
	}
	return found[0], nil
}

// List lists every limit, by name.
func List(ctx context.Context, store sluice.Store) ([]Limit, error) {
	return Given(store).Limits(ctx, nil)
}

// Uses says how much of the named limits is in use, by name. Without names, it lists every limit. It leaves out unknown
// names.
func Uses(ctx context.Context, store sluice.Store, names ...string) ([]Use, error) {
	return Given(store).LimitUses(ctx, names)
}

// Change changes a limit, or makes it if it is not stored yet. It reads the limit, lets change edit it, checks it, and
// stores it with one audit entry. If somebody else changes the limit in the meantime, Change begins again.
//
// The change counts from the next claim on, in every process.
func Change(ctx context.Context, store sluice.Store, name string, act sluice.Act, change func(*Limit) error) (Limit, error) {
	return edit(ctx, store, name, act, change, true)
}

// edit is Change. MayMake says whether it may make the limit.
func edit(ctx context.Context, store sluice.Store, name string, act sluice.Act, change func(*Limit) error, mayMake bool) (Limit, error) {
	if err := errors.Join(act.Check(), sluice.CheckGiven("change", change), checkName(name)); err != nil {
		return Limit{}, err
	}
	for {
		now, err := Read(ctx, store, name)
		if mayMake && errors.Is(err, errUnknown) {
			now, err = Limit{Name: name}, nil
		}
		if err != nil {
			return Limit{}, err
		}
		if err := change(&now); err != nil {
			return Limit{}, err
		}
		now.Name = name
		stored, err := Save(ctx, store, now, act)
		if !errors.Is(err, sluice.ErrConflict) {
			return stored, err
		}
	}
}

// Save stores a limit as the caller has read and changed it. If somebody else has changed the limit since, the error is a
// [sluice.ErrConflict]. [Change] reads, changes and stores until nobody else has.
func Save(ctx context.Context, store sluice.Store, limit Limit, act sluice.Act) (Limit, error) {
	limit.ClosedUntil = feature.Instant(limit.ClosedUntil)
	if err := errors.Join(act.Check(), limit.Check()); err != nil {
		return Limit{}, err
	}
	return Given(store).SaveLimit(ctx, limit, act)
}

// Close stops the claims of all queues of a limit, such as while a bank answers with errors. Running jobs go on, and no
// job is lost. After the while, the limit opens by itself. A while of 0 has no end. A limit that is closed for longer
// stays as it is. An unknown name is a [sluice.ErrNotFound].
func Close(ctx context.Context, store sluice.Store, name string, while time.Duration, act sluice.Act) (Limit, error) {
	if while < 0 {
		return Limit{}, feature.Invalid("for", fmt.Sprintf("%s is negative", while))
	}
	if while == 0 {
		return setClosed(ctx, store, name, true, time.Time{}, act)
	}
	now, err := sluice.GivenStore(store).Now(ctx)
	if err != nil {
		return Limit{}, err
	}
	var longer Limit
	closed, err := edit(ctx, store, name, act, func(l *Limit) error {
		if longer = *l; l.ClosedAt(now.Add(while - closeSlack)) {
			return errClosedLonger // also if somebody has closed it in this moment
		}
		l.Closed, l.ClosedUntil = true, now.Add(while)
		return nil
	}, false)
	if errors.Is(err, errClosedLonger) {
		return longer, nil
	}
	return closed, err
}

// Open ends a [Close]. An unknown name is a [sluice.ErrNotFound].
func Open(ctx context.Context, store sluice.Store, name string, act sluice.Act) (Limit, error) {
	return setClosed(ctx, store, name, false, time.Time{}, act)
}

func setClosed(ctx context.Context, store sluice.Store, name string, closed bool, until time.Time, act sluice.Act) (Limit, error) {
	return edit(ctx, store, name, act, func(l *Limit) error {
		l.Closed, l.ClosedUntil = closed, until
		return nil
	}, false)
}

// Undo restores a limit from before its last change, and whether it was closed. Undo is itself an audited change, and a
// second Undo undoes it. If the audit has no change since the limit was made, the error is a [sluice.ErrNotFound].
func Undo(ctx context.Context, store sluice.Store, name string, act sluice.Act) (Limit, error) {
	return edit(ctx, store, name, act, func(l *Limit) error {
		changes := sluice.AuditFilter{Object: audit.ObjectLimit, Name: name, Event: audit.EventChange}
		found, err := feature.LastChange(ctx, store, changes, audit.EventDelete, func(change sluice.AuditEntry) (bool, error) {
			before := Limit{Name: name, Version: l.Version}
			err := json.Unmarshal(change.Before, &before)
			*l = before
			return err == nil, err
		})
		if err == nil && !found {
			err = fmt.Errorf("limit %q has no change to undo in the audit: %w", name, sluice.ErrNotFound)
		}
		return err
	}, false)
}

// Delete deletes a limit. An unknown name is a [sluice.ErrNotFound]. A limit that queues name is a
// [sluice.ErrNotAllowed]: take it out of their settings first.
func Delete(ctx context.Context, store sluice.Store, name string, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	err := Given(store).DeleteLimit(ctx, name, act)
	if errors.Is(err, sluice.ErrNotAllowed) {
		return fmt.Errorf("limit %.80q: the setting limits of a queue names it; `sluice limits get %s` shows the queues: %w", name, name, err)
	}
	return err
}
