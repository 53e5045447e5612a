package sluice_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

// unreadable is a store whose settings cannot be read for a while, or only slowly.
type unreadable struct {
	*memory.Store
	fail  bool
	slow  time.Duration
	reads int
}

var errDown = errors.New("down")

func (u *unreadable) Queues(ctx context.Context) ([]sluice.Queue, error) {
	u.reads++
	fail := u.fail
	time.Sleep(u.slow)
	if fail {
		return nil, errDown
	}
	return u.Store.Queues(ctx)
}

func newUnreadable(t *testing.T, attempts int) *unreadable {
	t.Helper()
	store := memory.New(memory.Options{})
	settings := sluice.DefaultSettings()
	settings.MaxAttempts = attempts
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.EnsureQueue(t.Context(), "payments", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	return &unreadable{Store: store}
}

func TestSettingsThatWereNeverReadAreAnErrorAndNotTheDefaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newUnreadable(t, 1)
		store.fail = true
		live := sluice.NewLiveSettings(store, sluice.LiveOptions{})
		for range 2 { // at once, within the interval
			if _, err := live.Queue(t.Context(), "payments"); !errors.Is(err, errDown) {
				t.Errorf("error %v, want %v", err, errDown)
			}
		}
		store.fail = false
		if queue, err := live.Queue(t.Context(), "payments"); err != nil || queue.Settings.MaxAttempts != 1 {
			t.Errorf("max_attempts %d, error %v", queue.Settings.MaxAttempts, err)
		}
	})
}

func TestLastGoodSettingsCountWhileTheStoreCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newUnreadable(t, 1)
		live := sluice.NewLiveSettings(store, sluice.LiveOptions{})
		if _, err := live.Queue(t.Context(), "payments"); err != nil {
			t.Fatal(err)
		}
		store.fail = true
		time.Sleep(10 * sluice.SettingsInterval)
		if queue, err := live.Queue(t.Context(), "payments"); err != nil || queue.Settings.MaxAttempts != 1 {
			t.Errorf("max_attempts %d, error %v", queue.Settings.MaxAttempts, err)
		}
	})
}

func TestOneCallerWaitsForASlowStoreAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newUnreadable(t, 1)
		live := sluice.NewLiveSettings(store, sluice.LiveOptions{})
		if _, err := live.Queue(t.Context(), "payments"); err != nil {
			t.Fatal(err)
		}
		store.slow = time.Minute
		time.Sleep(2 * sluice.SettingsInterval)
		go func() { _, _ = live.Queue(t.Context(), "payments") }()
		synctest.Wait()
		begun := time.Now()
		if _, err := live.Queue(t.Context(), "payments"); err != nil || time.Since(begun) > 0 {
			t.Errorf("waited %s, error %v", time.Since(begun), err)
		}
		if store.reads != 2 {
			t.Errorf("%d reads, want 2", store.reads)
		}
		time.Sleep(2 * store.slow)
	})
}

// edited is a store in which somebody has changed the payload_schema by plain SQL.
type edited struct {
	*memory.Store
	schema string
}

func (e *edited) Queues(ctx context.Context) ([]sluice.Queue, error) {
	queues, err := e.Store.Queues(ctx)
	queues[0].Settings.PayloadSchema = e.schema
	return queues, err
}

// onlyObjects is a checker that knows one schema.
type onlyObjects struct{}

const anObject = `{"type":"object"}`

func (onlyObjects) Compile(schema string) error {
	if schema != anObject {
		return errors.New("it is not a JSON Schema")
	}
	return nil
}

func (onlyObjects) Check(string, []byte) error { return nil }

func TestStoredNonsenseIsLoggedOnceAndTheLastGoodValueCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &edited{Store: memory.New(memory.Options{}), schema: `{"type":"anything"}`}
		settings := sluice.DefaultSettings()
		settings.PayloadSchema = anObject
		client := sluice.NewClient(store.Store, sluice.ClientOptions{})
		if _, err := client.EnsureQueue(t.Context(), "payments", settings, sluice.Act{By: "test"}); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		live := sluice.NewLiveSettings(store, sluice.LiveOptions{PayloadChecker: onlyObjects{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for range 5 {
			queue, err := live.Queue(t.Context(), "payments")
			if err != nil || queue.Settings.PayloadSchema != anObject {
				t.Errorf("payload_schema %s, error %v", queue.Settings.PayloadSchema, err)
			}
			time.Sleep(2 * sluice.SettingsInterval)
		}
		if n := strings.Count(log.String(), "stored settings refused"); n != 1 {
			t.Errorf("%d warnings, want 1:\n%s", n, log.String())
		}
		store.schema = anObject
		time.Sleep(2 * sluice.SettingsInterval)
		if queue, err := live.Queue(t.Context(), "payments"); err != nil || queue.Wrong != "" {
			t.Errorf("warning %q, error %v", queue.Wrong, err)
		}
	})
}
