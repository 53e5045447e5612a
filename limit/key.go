package limit

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// KeyUse says how much of a limit that is per key one key uses.
type KeyUse struct {
	// Key is the limit key of jobs, such as a host.
	Key string
	// InFlight counts the key's claimed and dispatched jobs and its orphan runs in the queues of the limit, at most
	// [MaxFigure].
	InFlight int
	// Waiting counts the key's due jobs that claims have set aside until the limit lets them in, at most [MaxFigure].
	Waiting int
	// Wait is how long until the rate lets a job of the key start. 0: now, or there is no rate.
	Wait time.Duration
	// ClosedUntil is when the key opens by itself. Zero: it is open.
	ClosedUntil time.Time
}

// listedKeys is how many keys KeyUses lists if it is given none.
const listedKeys = 1000

// KeyUses says how much of a limit the given keys use, in their order. Without keys, it lists those that are closed or
// have waiting jobs, by name, at most 1,000. An unknown limit has no keys.
func KeyUses(ctx context.Context, store sluice.Store, name string, keys ...string) ([]KeyUse, error) {
	return Given(store).KeyUses(ctx, name, keys, listedKeys)
}

// CloseKey stops the claims of the jobs with a limit key, in all queues of a limit that is per key, for a while. Running
// jobs go on. A key that is closed for longer stays as it is. An unknown name is a [sluice.ErrNotFound], and a limit that
// is not per key a [sluice.ErrNotAllowed].
func CloseKey(ctx context.Context, store sluice.Store, name, key string, while time.Duration, act sluice.Act) error {
	if err := checkKeyOf(ctx, store, name, key, false, act); err != nil {
		return err
	}
	if while <= 0 {
		return feature.Invalid("for", fmt.Sprintf("a limit key is closed for a time, such as 10m; %s is none", sluice.FormatDuration(while)))
	}
	return setKeyClosed(ctx, store, name, key, while, act)
}

// OpenKey ends a [CloseKey].
func OpenKey(ctx context.Context, store sluice.Store, name, key string, act sluice.Act) error {
	if err := checkKeyOf(ctx, store, name, key, true, act); err != nil {
		return err
	}
	return setKeyClosed(ctx, store, name, key, 0, act)
}

func setKeyClosed(ctx context.Context, store sluice.Store, name, key string, while time.Duration, act sluice.Act) error {
	uses, err := KeyUses(ctx, store, name, key)
	if err != nil {
		return err
	}
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	until := now.Add(while)
	closed := len(uses) > 0 && uses[0].ClosedUntil.After(now)
	switch {
	case while == 0 && !closed, while > 0 && closed && uses[0].ClosedUntil.After(until.Add(-closeSlack)):
		return nil
	case while == 0:
		until = time.Time{}
	}
	return Given(store).CloseKey(ctx, name, key, feature.Instant(until), act)
}

// CloseKeyUntil is [CloseKey] until an instant of the store's clock. The zero instant opens the key.
func CloseKeyUntil(ctx context.Context, store sluice.Store, name, key string, until time.Time, act sluice.Act) error {
	if err := errors.Join(checkKeyOf(ctx, store, name, key, until.IsZero(), act), feature.CheckInstant("closed_until", until)); err != nil {
		return err
	}
	return Given(store).CloseKey(ctx, name, key, feature.Instant(until), act)
}

// checkKeyOf returns why a key of a limit cannot be closed or opened.
func checkKeyOf(ctx context.Context, store sluice.Store, name, key string, opens bool, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	if err := checkKey(key); err != nil {
		return err
	}
	of, err := Read(ctx, store, name)
	if err != nil {
		return err
	}
	switch {
	case !of.PerKey && opens:
		return fmt.Errorf("limit %q is not per key; `sluice limits open %s` opens it for all jobs: %w", name, name, sluice.ErrNotAllowed)
	case !of.PerKey:
		return fmt.Errorf("limit %q is not per key; `sluice limits close %s` closes it for all jobs: %w", name, name, sluice.ErrNotAllowed)
	}
	return nil
}

// checkKey returns a [sluice.ErrInvalid] if a limit key is empty or cannot be one.
func checkKey(key string) error {
	if key == "" || len(key) > sluice.MaxKeyBytes || !utf8.ValidString(key) {
		return feature.Invalid("key", fmt.Sprintf("%.80q must have 1 to %d bytes of UTF-8", key, sluice.MaxKeyBytes))
	}
	return nil
}
