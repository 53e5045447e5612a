package tenancy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Limits limit one tenant, or each tenant of a tier, in one queue or in every queue. A nil field sets nothing.
//
// The first of these that sets a field gives a tenant's effective limit:
//
//	the tenant in this queue
//	the tenant in every queue
//	its tier in this queue
//	its tier in every queue
//	the queue's settings tenant_concurrency, tenant_rate and tenant_burst
//
// A queue with any limits, or with the setting fair, serves its tenants in turns.
type Limits struct {
	// Queue is the queue that has the limits. Empty: every queue.
	Queue string `json:"queue,omitempty"`
	// Tier or Tenant names the limited tenants. Exactly one of them is set.
	Tier   string `json:"tier,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	// Concurrency is the most jobs of a tenant in flight. 0: no limit. Nil: not set.
	Concurrency *int `json:"concurrency,omitempty"`
	// Rate is how many jobs of a tenant may be claimed per time. 0: no limit. Burst is how many may be claimed at
	// once after a lull. With a burst of 0, claims spread over the window.
	//
	// They limit claims, not starts: a holder may start several claimed jobs together.
	Rate  *sluice.Rate `json:"rate,omitempty"`
	Burst *int         `json:"burst,omitempty"`
	// Weight is the tenant's share among the tenants that have work, 1 to [MaxWeight]. Default: 1.
	Weight *int `json:"weight,omitempty"`
	// Until is when the limits above end. Zero: never. Only for a tenant.
	Until time.Time `json:"until,omitzero"`
	// Paused stops the claims of the tenant's jobs until PausedUntil. Zero PausedUntil: until somebody resumes the
	// tenant. Only for a tenant.
	Paused      bool      `json:"paused,omitempty"`
	PausedUntil time.Time `json:"paused_until,omitzero"`

	// Version counts the changes. 0: not stored yet.
	Version int64 `json:"-"`
	// ChangedAt, ChangedBy and Reason describe the last change.
	ChangedAt time.Time `json:"-"`
	ChangedBy string    `json:"-"`
	Reason    string    `json:"-"`
}

// MaxWeight is the largest weight of a tenant.
const MaxWeight = 1000

// maxJobs is the largest concurrency, burst and rate per second.
const maxJobs = 1_000_000

// Object returns the kind of object in the audit: tier or tenant.
func (l Limits) Object() sluice.Object {
	if l.Tier != "" {
		return audit.ObjectTier
	}
	return audit.ObjectTenant
}

// Name returns the name of the tier or tenant.
func (l Limits) Name() string { return cmp.Or(l.Tier, l.Tenant) }

// Say reports whether the limits set anything. Limits that set nothing do not make a queue serve its tenants in
// turns.
func (l Limits) Say() bool {
	return l.Concurrency != nil || l.Rate != nil || l.Burst != nil || l.Weight != nil || l.Paused
}

// PausedAt reports whether the tenant is paused at an instant.
func (l Limits) PausedAt(now time.Time) bool {
	return l.Paused && (l.PausedUntil.IsZero() || l.PausedUntil.After(now))
}

// Check returns the rule that the limits break, as a [sluice.ErrInvalid].
func (l Limits) Check() error {
	if (l.Tier == "") == (l.Tenant == "") {
		return feature.Invalid("limits", "they are either a tier's or a tenant's")
	}
	if err := checkName(string(l.Object()), l.Name()); err != nil {
		return err
	}
	if l.Queue != "" {
		if err := sluice.CheckQueueName(l.Queue); err != nil {
			return err
		}
	}
	if l.Tier != "" && (l.Paused || !l.Until.IsZero()) {
		return feature.Invalid("limits", "only a tenant can be paused, or have limits for a time; a tier cannot")
	}
	if err := errors.Join(feature.CheckInstant("until", l.Until), feature.CheckInstant("paused_until", l.PausedUntil)); err != nil {
		return err
	}
	return l.checkFigures()
}

// checkFigures checks the range of each number.
func (l Limits) checkFigures() error {
	for _, figure := range []struct {
		name      string
		value     *int
		low, high int
	}{{"concurrency", l.Concurrency, 0, maxJobs}, {"burst", l.Burst, 0, maxJobs}, {"weight", l.Weight, 1, MaxWeight}} {
		if v := figure.value; v != nil && (*v < figure.low || *v > figure.high) {
			return feature.Invalid(figure.name, fmt.Sprintf("%d must be from %d to %d", *v, figure.low, figure.high))
		}
	}
	if l.Rate != nil && !l.Rate.Fits() {
		return feature.Invalid("rate", fmt.Sprintf("%s must be from 0 to %d/s, of at least one job in whole milliseconds", *l.Rate, maxJobs))
	}
	return nil
}

// Set reads a limit as a person writes it. Name is concurrency, rate, burst or weight; another name is a
// [sluice.ErrNotFound]. An empty text unsets the limit.
func (l *Limits) Set(name, text string) error {
	var err error
	switch name {
	case "concurrency":
		l.Concurrency, err = parseFigure(text, parseCount)
	case "rate":
		l.Rate, err = parseFigure(text, sluice.ParseRate)
	case "burst":
		l.Burst, err = parseFigure(text, parseCount)
	case "weight":
		l.Weight, err = parseFigure(text, parseCount)
	default:
		return fmt.Errorf("limit %.60q: %w; there are: concurrency, rate, burst, weight", name, sluice.ErrNotFound)
	}
	if err != nil {
		return feature.Invalid(name, err.Error())
	}
	return nil
}

// parseFigure reads a value. An empty text is nil.
func parseFigure[T any](text string, parse func(string) (T, error)) (*T, error) {
	if text == "" {
		return nil, nil
	}
	value, err := parse(text)
	return &value, err
}

// parseCount reads a whole number.
func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%.60q is not a whole number", text)
	}
	return n, nil
}

// LimitsOf lists the limits of a tenant or of a tier, by queue. Without either, it lists the limits of every tier.
func LimitsOf(ctx context.Context, store sluice.Store, tier, tenant string) ([]Limits, error) {
	return Given(store).TenantLimits(ctx, tier, tenant)
}

// ChangeLimits changes the limits of a tier or a tenant in the queue of the argument, or in every queue if the
// queue is empty. Of names the queue, and either the tier or the tenant.
//
// ChangeLimits reads the limits, lets change edit them, checks them, and stores them with one audit entry. If
// somebody else changes them in the meantime, it begins again. An unknown tier is a [sluice.ErrNotFound]; a new
// tenant is stored with its limits.
func ChangeLimits(ctx context.Context, store sluice.Store, of Limits, act sluice.Act, change func(*Limits) error) (Limits, error) {
	if err := act.Check(); err != nil {
		return Limits{}, err
	}
	if err := sluice.CheckGiven("change", change); err != nil {
		return Limits{}, err
	}
	if err := checkTier(ctx, store, of.Tier); err != nil {
		return Limits{}, err
	}
	for {
		now, err := limitsIn(ctx, store, of)
		if err != nil {
			return Limits{}, err
		}
		if err := change(&now); err != nil {
			return Limits{}, err
		}
		now.Until, now.PausedUntil = feature.Instant(now.Until), feature.Instant(now.PausedUntil)
		if err := now.Check(); err != nil {
			return Limits{}, err
		}
		if err := ensure(ctx, store, now.Tenant, act); err != nil {
			return Limits{}, err
		}
		stored, err := Given(store).SaveTenantLimits(ctx, now, act)
		if !errors.Is(err, sluice.ErrConflict) {
			return stored, err
		}
	}
}

// limitsIn returns the stored limits, or empty ones.
func limitsIn(ctx context.Context, store sluice.Store, of Limits) (Limits, error) {
	all, err := Given(store).TenantLimits(ctx, of.Tier, of.Tenant)
	if err != nil {
		return Limits{}, err
	}
	for _, l := range all {
		if l.Queue == of.Queue {
			return l, nil
		}
	}
	return Limits{Queue: of.Queue, Tier: of.Tier, Tenant: of.Tenant}, nil
}

// ensure stores a tenant that is not stored yet.
func ensure(ctx context.Context, store sluice.Store, name string, act sluice.Act) error {
	if name == "" {
		return nil
	}
	_, err := Given(store).Tenant(ctx, name)
	if !errors.Is(err, sluice.ErrNotFound) {
		return err
	}
	act.ID = sluice.NewID()
	if _, err = Given(store).SaveTenant(ctx, Tenant{Name: name}, act); errors.Is(err, sluice.ErrConflict) {
		return nil // somebody else stored it in between
	}
	return err
}

// Pause stops the claims of a tenant's jobs in a queue, or in every queue if queue is empty. Running jobs go on,
// and no job is lost. After the while, the tenant opens again by itself. A while of 0 has no end.
func Pause(ctx context.Context, store sluice.Store, queue, tenant string, while time.Duration, act sluice.Act) (Limits, error) {
	if while < 0 {
		return Limits{}, feature.Invalid("for", fmt.Sprintf("%s is negative", while))
	}
	if while == 0 {
		return setPaused(ctx, store, queue, tenant, true, time.Time{}, act)
	}
	now, err := sluice.GivenStore(store).Now(ctx)
	if err != nil {
		return Limits{}, err
	}
	return setPaused(ctx, store, queue, tenant, true, now.Add(while), act)
}

// Resume ends a [Pause] of the same queue and tenant. If the store has no limits of the tenant there, the error is
// a [sluice.ErrNotFound]. The pause is then in another queue, or the name is wrong.
func Resume(ctx context.Context, store sluice.Store, queue, tenant string, act sluice.Act) error {
	limits, err := limitsIn(ctx, store, Limits{Queue: queue, Tenant: tenant})
	if err != nil {
		return err
	}
	if limits.Version == 0 {
		where := "every queue"
		if queue != "" {
			where = fmt.Sprintf("queue %.80q", queue)
		}
		return fmt.Errorf("limits of tenant %.80q in %s: %w", tenant, where, sluice.ErrNotFound)
	}
	_, err = setPaused(ctx, store, queue, tenant, false, time.Time{}, act)
	return err
}

// setPaused pauses a tenant until an instant (zero: no end), or resumes it.
func setPaused(ctx context.Context, store sluice.Store, queue, tenant string, paused bool, until time.Time, act sluice.Act) (Limits, error) {
	return ChangeLimits(ctx, store, Limits{Queue: queue, Tenant: tenant}, act, func(l *Limits) error {
		l.Paused, l.PausedUntil = paused, until
		return nil
	})
}

// PresetTiers returns three usual tiers with their concurrencies. The store has none of them until somebody adds it.
func PresetTiers() []Limits {
	return []Limits{
		{Tier: "FREE", Concurrency: new(1)}, {Tier: "PRO", Concurrency: new(5)}, {Tier: "ENTERPRISE", Concurrency: new(20)},
	}
}

// DeleteTier deletes a tier and its limits. Its tenants stay, without a tier. An unknown tier is a
// [sluice.ErrNotFound].
//
// Tenants leave the tier before it goes, some thousands in each transaction. If the call is cut off, call it again.
func DeleteTier(ctx context.Context, store sluice.Store, name string, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	return Given(store).Delete(ctx, audit.ObjectTier, name, act)
}

// Delete deletes a tenant's tier and limits. Its jobs stay, and follow the queue's settings for tenants. An unknown
// tenant is a [sluice.ErrNotFound].
func Delete(ctx context.Context, store sluice.Store, name string, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	return Given(store).Delete(ctx, audit.ObjectTenant, name, act)
}
