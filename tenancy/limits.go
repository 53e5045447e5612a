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

// Limits are what a queue grants to one tenant, or to each tenant of a tier. A nil figure says
// nothing; each figure is taken from the nearest that says it: the tenant in this queue, the tenant in
// every queue, its tier in this queue, its tier in every queue, and last the queue's settings
// tenant_concurrency, tenant_rate and tenant_burst. A queue for which there are such limits, or whose setting
// fair is true, serves its tenants in turns.
type Limits struct {
	// Queue is where they count; empty: in every queue.
	Queue string `json:"queue,omitempty"`
	// Tier or Tenant says for whom; exactly one of them is set.
	Tier   string `json:"tier,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	// Concurrency is how many jobs of a tenant may be claimed or dispatched at the same time;
	// 0: as many as there are.
	Concurrency *int `json:"concurrency,omitempty"`
	// Rate and Burst are how many of its jobs may be claimed per time, and at once after a lull. They bound claims, not
	// starts: jobs that are held between the two may start together.
	// A rate of 0 is no limit, a burst of 0 spreads them over its window.
	Rate  *sluice.Rate `json:"rate,omitempty"`
	Burst *int         `json:"burst,omitempty"`
	// Weight is a tenant's share of the queue beside the others that have work, 1 to MaxWeight.
	// Default 1.
	Weight *int `json:"weight,omitempty"`
	// Until is when the figures above stop counting; zero: never. Only for a tenant.
	Until time.Time `json:"until,omitzero"`
	// Paused stops the claims of the tenant's jobs, until PausedUntil if that is set. Only for a tenant.
	Paused      bool      `json:"paused,omitempty"`
	PausedUntil time.Time `json:"paused_until,omitzero"`

	// Version counts the changes; 0: they are not stored yet.
	Version int64 `json:"-"`
	// ChangedAt, ChangedBy and Reason tell of the last change.
	ChangedAt time.Time `json:"-"`
	ChangedBy string    `json:"-"`
	Reason    string    `json:"-"`
}

// MaxWeight is the largest weight of a tenant.
const MaxWeight = 1000

const (
	// maxJobs is the most that limits may count.
	maxJobs = 1_000_000
	// clockSlack is how far this process's clock may be from the store's before it matters.
	clockSlack = time.Second
)

// Object says whether the limits are a tier's or a tenant's, for the audit.
func (l Limits) Object() sluice.Object {
	if l.Tier != "" {
		return audit.ObjectTier
	}
	return audit.ObjectTenant
}

// Name is that of the tier or tenant.
func (l Limits) Name() string { return cmp.Or(l.Tier, l.Tenant) }

// Say reports whether the limits say anything. Those that do not put no queue in turns.
func (l Limits) Say() bool {
	return l.Concurrency != nil || l.Rate != nil || l.Burst != nil || l.Weight != nil || l.Paused
}

// PausedAt reports whether the tenant is paused at an instant.
func (l Limits) PausedAt(now time.Time) bool {
	return l.Paused && (l.PausedUntil.IsZero() || l.PausedUntil.After(now))
}

// Check says which rule the limits break, as a [sluice.ErrInvalid].
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

func (l Limits) checkFigures() error {
	for _, figure := range []struct {
		name      string
		value     *int
		low, high int
	}{{"concurrency", l.Concurrency, 0, maxJobs}, {"burst", l.Burst, 0, maxJobs}, {"weight", l.Weight, 1, MaxWeight}} {
		if v := figure.value; v != nil && (*v < figure.low || *v > figure.high) {
			return feature.Invalid(figure.name, fmt.Sprintf("%d is not from %d to %d", *v, figure.low, figure.high))
		}
	}
	if l.Rate != nil && !l.Rate.Fits() {
		return feature.Invalid("rate", fmt.Sprintf("%s is not from 0 to %d/s, of at least one job in whole milliseconds", *l.Rate, maxJobs))
	}
	return nil
}

// Set reads what a person wrote into the figure of a name: concurrency, rate, burst or weight. An empty text
// makes it say nothing.
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

func parseFigure[T any](text string, parse func(string) (T, error)) (*T, error) {
	if text == "" {
		return nil, nil
	}
	value, err := parse(text)
	return &value, err
}

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%.60q is not a whole number", text)
	}
	return n, nil
}

// LimitsOf lists the limits of a tenant or of a tier, by queue; without either, those of every tier.
func LimitsOf(ctx context.Context, store sluice.Store, tier, tenant string) ([]Limits, error) {
	return Given(store).TenantLimits(ctx, tier, tenant)
}

// ChangeLimits changes what a queue, or every queue if its name is empty, grants to a tier or a
// tenant: exactly one of them is named. It reads the limits, lets change edit them, checks the whole and
// stores it with one audit entry; if somebody else changed them in between, it begins anew. A tier must be
// stored, and is a [sluice.ErrNotFound] otherwise; a tenant is stored with its limits.
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

// limitsIn gives the limits as they are stored, or empty ones.
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

// Pause stops the claims of a tenant's jobs in a queue, or in every queue if its name is empty; what
// runs goes on, and nothing is lost. Of a while that is not 0 the tenant is open again by itself.
func Pause(ctx context.Context, store sluice.Store, queue, tenant string, while time.Duration, act sluice.Act) (Limits, error) {
	if while < 0 {
		return Limits{}, feature.Invalid("while", fmt.Sprintf("%s is negative", while))
	}
	if while == 0 {
		return setPaused(ctx, store, queue, tenant, true, time.Time{}, act)
	}
	paused, err := setPaused(ctx, store, queue, tenant, true, time.Now().Add(while), act)
	if err != nil {
		return paused, err
	}
	if until := paused.ChangedAt.Add(while); until.Sub(paused.PausedUntil).Abs() > clockSlack {
		return setPaused(ctx, store, queue, tenant, true, until, act) // this process's clock is wrong
	}
	return paused, nil
}

// Resume ends a Pause of the same queue and tenant. Where nothing is stored of the tenant it is a
// [sluice.ErrNotFound]: it is paused elsewhere, or has another name.
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

func setPaused(ctx context.Context, store sluice.Store, queue, tenant string, paused bool, until time.Time, act sluice.Act) (Limits, error) {
	return ChangeLimits(ctx, store, Limits{Queue: queue, Tenant: tenant}, act, func(l *Limits) error {
		l.Paused, l.PausedUntil = paused, until
		return nil
	})
}

// PresetTiers are the tiers of the source designs and their concurrencies. None is stored unless
// somebody asks for it.
func PresetTiers() []Limits {
	return []Limits{
		{Tier: "FREE", Concurrency: new(1)}, {Tier: "PRO", Concurrency: new(5)}, {Tier: "ENTERPRISE", Concurrency: new(20)},
	}
}

// DeleteTier forgets a tier and its limits. The tenants that are in it go on as tenants without a tier. An
// unknown one is a [sluice.ErrNotFound].
func DeleteTier(ctx context.Context, store sluice.Store, name string, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	return Given(store).Delete(ctx, audit.ObjectTier, name, act)
}

// Delete forgets a tenant's tier and limits. Its jobs stay, and go on by what the queue says of
// tenants. An unknown one is a [sluice.ErrNotFound].
func Delete(ctx context.Context, store sluice.Store, name string, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	return Given(store).Delete(ctx, audit.ObjectTenant, name, act)
}
