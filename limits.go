package sluice

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// TenantLimits are what a queue grants to one tenant, or to each tenant of a tier. A nil figure says
// nothing; each figure is taken from the nearest that says it: the tenant in this queue, the tenant in
// every queue, its tier in this queue, its tier in every queue, and last the queue's settings
// tenant_capacity, tenant_rate and tenant_burst. A queue for which there are such limits, or whose setting
// fair is true, serves its tenants in turns.
type TenantLimits struct {
	// Queue is where they count; empty: in every queue.
	Queue string `json:"queue,omitempty"`
	// Tier or Tenant says for whom; exactly one of them is set.
	Tier   string `json:"tier,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	// Capacity is how many jobs of a tenant may be claimed or dispatched at the same time;
	// 0: as many as there are.
	Capacity *int `json:"capacity,omitempty"`
	// Rate and Burst are how many of its jobs may be claimed per time, and at once after a lull. They bound claims, not
	// starts: jobs that are held between the two may start together.
	// A rate of 0 is no limit, a burst of 0 spreads them over its window.
	Rate  *Rate `json:"rate,omitempty"`
	Burst *int  `json:"burst,omitempty"`
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

// Terms are the limits that count for a tenant in a queue, whoever said them.
type Terms struct {
	// Capacity is how many jobs may be in flight at the same time; 0: no limit.
	Capacity int `json:"capacity,omitempty"`
	// Rate and Burst are how many may be claimed per time, and at once after a lull; 0: no limit.
	Rate  Rate `json:"rate,omitzero"`
	Burst int  `json:"burst,omitempty"`
	// Weight is the tenant's share beside the others that have work.
	Weight int `json:"weight"`
	// Until is when others count; zero: never.
	Until time.Time `json:"until,omitzero"`
	// Paused tenants are open again at PausedUntil, if that is set.
	Paused      bool      `json:"paused,omitempty"`
	PausedUntil time.Time `json:"paused_until,omitzero"`
}

// MaxWeight is the largest weight of a tenant.
const MaxWeight = 1000

// Object says whether the limits are a tier's or a tenant's, for the audit.
func (l TenantLimits) Object() Object {
	if l.Tier != "" {
		return ObjectTier
	}
	return ObjectTenant
}

// Name is that of the tier or tenant.
func (l TenantLimits) Name() string { return orElse(l.Tier, l.Tenant) }

// Say reports whether the limits say anything. Those that do not put no queue in turns.
func (l TenantLimits) Say() bool {
	return l.Capacity != nil || l.Rate != nil || l.Burst != nil || l.Weight != nil || l.Paused
}

// PausedAt reports whether the tenant is paused at an instant.
func (l TenantLimits) PausedAt(now time.Time) bool {
	return l.Paused && (l.PausedUntil.IsZero() || l.PausedUntil.After(now))
}

// Check says which rule the limits break, as an ErrInvalid.
func (l TenantLimits) Check() error {
	if (l.Tier == "") == (l.Tenant == "") {
		return invalid("limits", "they are either a tier's or a tenant's")
	}
	if err := checkRequiredName(string(l.Object()), l.Name()); err != nil {
		return err
	}
	if l.Queue != "" {
		if err := CheckQueueName(l.Queue); err != nil {
			return err
		}
	}
	if l.Tier != "" && (l.Paused || !l.Until.IsZero()) {
		return invalid("limits", "only a tenant can be paused, or have limits for a time; a tier cannot")
	}
	if err := errors.Join(checkInstant("until", l.Until), checkInstant("paused_until", l.PausedUntil)); err != nil {
		return err
	}
	return l.checkFigures()
}

func (l TenantLimits) checkFigures() error {
	for _, figure := range []struct {
		name      string
		value     *int
		low, high int
	}{{"capacity", l.Capacity, 0, maxFlow}, {"burst", l.Burst, 0, maxFlow}, {"weight", l.Weight, 1, MaxWeight}} {
		if v := figure.value; v != nil && (*v < figure.low || *v > figure.high) {
			return invalid(figure.name, fmt.Sprintf("%d is not from %d to %d", *v, figure.low, figure.high))
		}
	}
	if l.Rate != nil && !l.Rate.Fits() {
		return invalid("rate", fmt.Sprintf("%s is not from 0 to %d/s, of at least one job in whole milliseconds", *l.Rate, maxRate))
	}
	return nil
}

// Set reads what a person wrote into the figure of a name: capacity, rate, burst or weight. An empty text
// makes it say nothing.
func (l *TenantLimits) Set(name, text string) error {
	var err error
	switch name {
	case "capacity":
		l.Capacity, err = parseFigure(text, parseCount)
	case "rate":
		l.Rate, err = parseFigure(text, ParseRate)
	case "burst":
		l.Burst, err = parseFigure(text, parseCount)
	case "weight":
		l.Weight, err = parseFigure(text, parseCount)
	default:
		return fmt.Errorf("limit %.60q: %w; there are: capacity, rate, burst, weight", name, ErrNotFound)
	}
	if err != nil {
		return invalid(name, err.Error())
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

// TenantLimits lists the limits of a tenant or of a tier, by queue; without either, those of every tier.
func (c *Client) TenantLimits(ctx context.Context, tier, tenant string) ([]TenantLimits, error) {
	return c.store.TenantLimits(ctx, tier, tenant)
}

// ChangeTenantLimits changes what a queue, or every queue if its name is empty, grants to a tier or a
// tenant: exactly one of them is named. It reads the limits, lets change edit them, checks the whole and
// stores it with one audit entry; if somebody else changed them in between, it begins anew. A tier must be
// stored, and is an ErrNotFound otherwise; a tenant is stored with its limits.
func (c *Client) ChangeTenantLimits(ctx context.Context, of TenantLimits, act Act, change func(*TenantLimits) error) (TenantLimits, error) {
	if err := act.Check(); err != nil {
		return TenantLimits{}, err
	}
	if err := c.checkTier(ctx, of.Tier); err != nil {
		return TenantLimits{}, err
	}
	for {
		now, err := c.limitsOf(ctx, of)
		if err != nil {
			return TenantLimits{}, err
		}
		if err := edit(&now, change); err != nil {
			return TenantLimits{}, err
		}
		now.Until, now.PausedUntil = storedInstant(now.Until), storedInstant(now.PausedUntil)
		if err := now.Check(); err != nil {
			return TenantLimits{}, err
		}
		if err := c.ensureTenant(ctx, now.Tenant, act); err != nil {
			return TenantLimits{}, err
		}
		stored, err := c.store.SaveTenantLimits(ctx, now, act)
		if !errors.Is(err, ErrConflict) {
			return stored, err
		}
	}
}

// limitsOf gives the limits as they are stored, or empty ones.
func (c *Client) limitsOf(ctx context.Context, of TenantLimits) (TenantLimits, error) {
	all, err := c.store.TenantLimits(ctx, of.Tier, of.Tenant)
	if err != nil {
		return TenantLimits{}, err
	}
	for _, l := range all {
		if l.Queue == of.Queue {
			return l, nil
		}
	}
	return TenantLimits{Queue: of.Queue, Tier: of.Tier, Tenant: of.Tenant}, nil
}

// ensureTenant stores a tenant that is not stored yet.
func (c *Client) ensureTenant(ctx context.Context, name string, act Act) error {
	if name == "" {
		return nil
	}
	_, err := c.store.Tenant(ctx, name)
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	act.ID = NewID()
	if _, err = c.store.SaveTenant(ctx, Tenant{Name: name}, act); errors.Is(err, ErrConflict) {
		return nil // somebody else stored it in between
	}
	return err
}

// PauseTenant stops the claims of a tenant's jobs in a queue, or in every queue if its name is empty; what
// runs goes on, and nothing is lost. Of a while that is not 0 the tenant is open again by itself.
func (c *Client) PauseTenant(ctx context.Context, queue, tenant string, while time.Duration, act Act) (TenantLimits, error) {
	if while < 0 {
		return TenantLimits{}, invalid("while", fmt.Sprintf("%s is negative", while))
	}
	if while == 0 {
		return c.setTenantPaused(ctx, queue, tenant, true, time.Time{}, act)
	}
	paused, err := c.setTenantPaused(ctx, queue, tenant, true, time.Now().Add(while), act)
	if err != nil {
		return paused, err
	}
	if until := paused.ChangedAt.Add(while); until.Sub(paused.PausedUntil).Abs() > clockSlack {
		return c.setTenantPaused(ctx, queue, tenant, true, until, act) // this process's clock is wrong
	}
	return paused, nil
}

// ResumeTenant ends a PauseTenant of the same queue and tenant. Where nothing is stored of the tenant it is an
// ErrNotFound: it is paused elsewhere, or has another name.
func (c *Client) ResumeTenant(ctx context.Context, queue, tenant string, act Act) error {
	limits, err := c.limitsOf(ctx, TenantLimits{Queue: queue, Tenant: tenant})
	if err != nil {
		return err
	}
	if limits.Version == 0 {
		where := "every queue"
		if queue != "" {
			where = fmt.Sprintf("queue %.80q", queue)
		}
		return fmt.Errorf("limits of tenant %.80q in %s: %w", tenant, where, ErrNotFound)
	}
	_, err = c.setTenantPaused(ctx, queue, tenant, false, time.Time{}, act)
	return err
}

func (c *Client) setTenantPaused(ctx context.Context, queue, tenant string, paused bool, until time.Time, act Act) (TenantLimits, error) {
	return c.ChangeTenantLimits(ctx, TenantLimits{Queue: queue, Tenant: tenant}, act, func(l *TenantLimits) error {
		l.Paused, l.PausedUntil = paused, until
		return nil
	})
}

// PresetTiers are the tiers of the source designs and their capacities. None is stored unless
// somebody asks for it.
func PresetTiers() []TenantLimits {
	return []TenantLimits{
		{Tier: "FREE", Capacity: new(1)}, {Tier: "PRO", Capacity: new(5)}, {Tier: "ENTERPRISE", Capacity: new(20)},
	}
}

// DeleteTier forgets a tier and its limits. The tenants that are in it go on as tenants without a tier. An
// unknown one is an ErrNotFound.
func (c *Client) DeleteTier(ctx context.Context, name string, act Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	return c.store.Delete(ctx, ObjectTier, name, act)
}

// DeleteTenant forgets a tenant's tier and limits. Its jobs stay, and go on by what the queue says of
// tenants. An unknown one is an ErrNotFound.
func (c *Client) DeleteTenant(ctx context.Context, name string, act Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	return c.store.Delete(ctx, ObjectTenant, name, act)
}
