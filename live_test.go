package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

// unreadable is a store that fails to read settings while fail is set, or reads them slowly.
type unreadable struct {
	*memory.Store
	fail  bool
	slow  time.Duration
	reads int
}

var errDown = errors.New("down")

func (u *unreadable) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	u.reads++
	fail := u.fail
	time.Sleep(u.slow)
	if fail {
		return nil, errDown
	}
	return u.Store.Queues(ctx, filter)
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
		for range 2 { // the second call comes within the interval
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

// edited is a store in which plain SQL has changed a payload_schema.
type edited struct {
	*memory.Store
	schema string
}

func (e *edited) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	queues, err := e.Store.Queues(ctx, filter)
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

// manyQueues is a store that remembers which queues were read.
type manyQueues struct {
	*memory.Store
	mu    sync.Mutex
	slow  time.Duration
	fail  atomic.Bool
	reads [][]string
}

func (m *manyQueues) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	m.mu.Lock()
	m.reads = append(m.reads, slices.Sorted(slices.Values(filter.Names)))
	m.mu.Unlock()
	time.Sleep(m.slow)
	if m.fail.Load() {
		return nil, errDown
	}
	return m.Store.Queues(ctx, filter)
}

func TestOnlyQueuesThatAreAskedForAreReadAndForgottenLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &manyQueues{Store: memory.New(memory.Options{})}
		live := sluice.NewLiveSettings(store, sluice.LiveOptions{})
		for range 30 {
			for _, name := range []string{"a", "b"} {
				if len(store.reads) > 10 && name == "b" {
					continue
				}
				if _, err := live.Queue(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(sluice.SettingsInterval)
		}
		first, last := store.reads[:3], store.reads[len(store.reads)-1]
		if want := [][]string{{"a"}, {"b"}, {"a", "b"}}; !reflect.DeepEqual(first, want) {
			t.Errorf("first read %v, want %v", first, want)
		}
		if want := []string{"a"}; !slices.Equal(last, want) {
			t.Errorf("last read %v, want %v", last, want)
		}
		if live.Now().IsZero() {
			t.Error("the clock is not known, although the store was read")
		}
	})
}

func TestAQueueThatIsAskedForSeldomIsReadWithoutThoseThatAreKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &manyQueues{Store: memory.New(memory.Options{})}
		live := sluice.NewLiveSettings(store, sluice.LiveOptions{})
		ask := func(names ...string) {
			t.Helper()
			for _, name := range names {
				if _, err := live.Queue(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
		}
		ask("seldom", "often", "too")
		for range 6 { // after these rounds, nobody has asked for the queue `seldom` lately
			time.Sleep(sluice.SettingsInterval)
			ask("often", "too")
		}
		time.Sleep(sluice.SettingsInterval / 4)
		ask("seldom")
		time.Sleep(sluice.SettingsInterval * 3 / 4)
		ask("often", "seldom", "too")
		last := store.reads[len(store.reads)-2:]
		if want := [][]string{{"seldom"}, {"often", "seldom", "too"}}; !reflect.DeepEqual(last, want) {
			t.Errorf("last read %v, want %v", last, want)
		}
	})
}

func TestManyUnknownQueuesAreReadTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &manyQueues{Store: memory.New(memory.Options{}), slow: time.Second / 10}
		live := sluice.NewLiveSettings(store, sluice.LiveOptions{})
		var all sync.WaitGroup
		for n := range 1000 {
			all.Go(func() {
				if _, err := live.Queue(t.Context(), fmt.Sprint("q", n)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(store.reads) > 2 {
			t.Errorf("%d reads, want at most 2", len(store.reads))
		}
		live.Expect("x", "y")
		if _, err := live.Queue(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		if last, want := store.reads[len(store.reads)-1], []string{"x", "y"}; !slices.Equal(last, want) {
			t.Errorf("read %v, want %v", last, want)
		}
	})
}

func TestThoseThatWaitForAReadingShareItsFaultButNotItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &manyQueues{Store: memory.New(memory.Options{}), slow: time.Second}
		store.fail.Store(true)
		live := sluice.NewLiveSettings(store, sluice.LiveOptions{})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := live.Queue(t.Context(), "payments"); !errors.Is(err, errDown) {
					t.Errorf("error %v, want %v", err, errDown)
				}
			})
		}
		all.Wait()
		if len(store.reads) != 1 {
			t.Errorf("%d reads, want 1", len(store.reads))
		}
		ended, end := context.WithCancel(t.Context())
		go func() { _, _ = live.Queue(ended, "mail") }()
		synctest.Wait()
		store.fail.Store(false)
		end()
		if _, err := live.Queue(t.Context(), "mail"); err != nil {
			t.Error(err)
		}
	})
}

func TestNamesThatNoQueueCanHaveAreNotSentToTheStore(t *testing.T) {
	t.Parallel()
	store := &manyQueues{Store: memory.New(memory.Options{})}
	live := sluice.NewLiveSettings(store, sluice.LiveOptions{})
	if queue, err := live.Queue(t.Context(), "\x00"); err != nil || queue.Version != 0 {
		t.Errorf("version %d, error %v", queue.Version, err)
	}
	if len(store.reads) > 0 {
		t.Errorf("read %v", store.reads)
	}
}
