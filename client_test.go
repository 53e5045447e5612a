package sluice_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/store/memory"
)

var ada = sluice.Act{By: "ada", Reason: "test"}

func newClient(t *testing.T) (*sluice.Client, sluice.Store) {
	t.Helper()
	store := memory.New(memory.Options{})
	return sluice.NewClient(store, sluice.ClientOptions{}), store
}

func TestBadJobsAreRefusedWithTheRuleTheyBreak(t *testing.T) {
	t.Parallel()
	now := time.Now()
	long := strings.Repeat("x", 300)
	tooMany := map[string]string{}
	for i := range 20 {
		tooMany[strings.Repeat("a", i+1)] = ""
	}
	for name, c := range map[string]struct {
		job  sluice.NewJob
		want string
	}{
		"no queue":                   {sluice.NewJob{}, "queue"},
		"a queue with blanks":        {sluice.NewJob{Queue: "a b"}, "queue"},
		"a queue that is too long":   {sluice.NewJob{Queue: long}, "queue"},
		"no payload":                 {sluice.NewJob{Queue: "q"}, "payload: it is missing"},
		"half a payload":             {sluice.NewJob{Queue: "q", Payload: []byte(`{"a":`)}, "not valid JSON"},
		"two payloads":               {sluice.NewJob{Queue: "q", Payload: []byte(`1 2`)}, "not valid JSON"},
		"a payload of 501 levels":    {sluice.NewJob{Queue: "q", Payload: nested(501)}, "payload: it is nested deeper than 500 levels"},
		"a payload of 9000 levels":   {sluice.NewJob{Queue: "q", Payload: nested(9000)}, "payload: it is nested deeper than 500 levels"},
		"bad UTF-8":                  {sluice.NewJob{Queue: "q", Payload: []byte("\"\xff\"")}, "UTF-8"},
		"a payload over the limit":   {sluice.NewJob{Queue: "q", Payload: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)}, "payload_limit of 1048576"},
		"a tenant that is too long":  {job(sluice.EnqueueOptions{Tenant: long}), "tenant"},
		"a tenant with a line break": {job(sluice.EnqueueOptions{Tenant: "a\nb"}), "control character"},
		"a key that is too long":     {job(sluice.EnqueueOptions{Key: long}), "key"},
		"a key of bad UTF-8":         {job(sluice.EnqueueOptions{Key: "\xff"}), "UTF-8"},
		"a scope without a key":      {job(sluice.EnqueueOptions{KeyScope: sluice.ForEver}), "needs a key"},
		"an unknown scope":           {job(sluice.EnqueueOptions{Key: "k", KeyScope: "today"}), "key_scope"},
		"a window without a length":  {job(sluice.EnqueueOptions{Key: "k", KeyScope: sluice.ForWindow}), "key_window"},
		"a length without a window":  {job(sluice.EnqueueOptions{Key: "k", KeyWindow: time.Hour}), "key_window"},
		"an unknown duplicate rule":  {job(sluice.EnqueueOptions{Key: "k", OnDuplicate: "fail"}), "on_duplicate"},
		"to debounce for a window":   {job(sluice.EnqueueOptions{Key: "k", KeyScope: sluice.ForWindow, KeyWindow: time.Hour, OnDuplicate: sluice.Debounce}), "on_duplicate"},
		"to throttle with a delay":   {job(sluice.EnqueueOptions{Key: "k", KeyScope: sluice.ForWindow, KeyWindow: time.Hour, Delay: time.Hour, OnDuplicate: sluice.Coalesce}), "on_duplicate"},
		"to coalesce for ever":       {job(sluice.EnqueueOptions{Key: "k", KeyScope: sluice.ForEver, OnDuplicate: sluice.Coalesce}), "on_duplicate"},
		"the largest UUID":           {job(sluice.EnqueueOptions{ID: sluice.ID(bytes.Repeat([]byte{0xff}, 16))}), "names no job"},
		"priority 11":                {job(sluice.EnqueueOptions{Priority: 11}), "priority"},
		"a negative delay":           {job(sluice.EnqueueOptions{Delay: -time.Second}), "delay"},
		"two due times":              {job(sluice.EnqueueOptions{Delay: time.Second, DueAt: now}), "delay"},
		"an expiry before it is due": {job(sluice.EnqueueOptions{DueAt: now.Add(time.Hour), ExpiresAt: now}), "expires_at"},
		"an expiry that has passed":  {job(sluice.EnqueueOptions{ExpiresAt: now.Add(-24 * time.Hour)}), "expires_at"},
		"an expiry within the delay": {job(sluice.EnqueueOptions{Delay: 48 * time.Hour, ExpiresAt: now.Add(24 * time.Hour)}), "expires_at"},
		"a key that reads backwards": {job(sluice.EnqueueOptions{Key: "a\u202eb"}), "cannot be seen"},
		"a tenant of no width":       {job(sluice.EnqueueOptions{Tenant: "acme\u200b"}), "cannot be seen"},
		"a year out of range":        {job(sluice.EnqueueOptions{DueAt: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)}), "due_at"},
		"negative timeout":           {job(sluice.EnqueueOptions{Timeout: -time.Second}), "timeout"},
		"timeout of half a ms":       {job(sluice.EnqueueOptions{Timeout: 500 * time.Microsecond}), "timeout"},
		"timeout of 31 days":         {job(sluice.EnqueueOptions{Timeout: 31 * 24 * time.Hour}), "timeout"},
		"too many attempts":          {job(sluice.EnqueueOptions{MaxAttempts: 1_000_000}), "max_attempts"},
		"too many labels":            {job(sluice.EnqueueOptions{Labels: tooMany}), "labels"},
		"a label without a name":     {job(sluice.EnqueueOptions{Labels: map[string]string{"": "x"}}), "labels"},
		"a label that is too long":   {job(sluice.EnqueueOptions{Labels: map[string]string{"a": long}}), "labels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, store := newClient(t)
			_, err := client.Enqueue(t.Context(), c.job)
			var invalid *sluice.InvalidError
			if !errors.Is(err, sluice.ErrInvalid) || !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			page, err := store.Jobs(t.Context(), sluice.JobFilter{Limit: 1})
			if err != nil || len(page.Jobs) != 0 {
				t.Errorf("something was stored: %v, %v", page.Jobs, err)
			}
		})
	}
}

func job(options sluice.EnqueueOptions) sluice.NewJob {
	return sluice.NewJob{Queue: "q", Payload: []byte(`{}`), EnqueueOptions: options}
}

func TestOneBadJobInABatchFailsAlone(t *testing.T) {
	t.Parallel()
	client, _ := newClient(t)
	receipts, err := client.EnqueueMany(t.Context(), []sluice.NewJob{job(sluice.EnqueueOptions{}), {Queue: "q"}, job(sluice.EnqueueOptions{Priority: 3})})
	var batch *sluice.BatchError
	if !errors.As(err, &batch) || len(batch.Failed) != 1 || batch.Failed[1] == nil || batch.Total != 3 {
		t.Fatalf("error %v", err)
	}
	if !strings.Contains(err.Error(), "1 of 3 failed; item 1: invalid payload") || !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("error %q", err)
	}
	for i, receipt := range receipts {
		_, err := client.Job(t.Context(), receipt.ID)
		if stored := err == nil; stored != (i != 1) {
			t.Errorf("job %d is stored: %v", i, stored)
		}
	}
}

func TestTypedQueueCarriesItsType(t *testing.T) {
	t.Parallel()
	type mail struct {
		To string `json:"to"`
	}
	mails := sluice.QueueOf[mail]("mail")
	client, _ := newClient(t)
	receipt, err := mails.Enqueue(t.Context(), client, mail{"ada"}, sluice.EnqueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := client.Job(t.Context(), receipt.ID)
	if err != nil || string(stored.Payload) != `{"to":"ada"}` || stored.Queue != mails.Name() {
		t.Errorf("stored %s in %s, %v", stored.Payload, stored.Queue, err)
	}
	if got, err := mails.Decode(stored.Payload); err != nil || got.To != "ada" {
		t.Errorf("decoded %+v, %v", got, err)
	}
	if _, err := mails.Decode([]byte(`{"to":7}`)); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("a payload of another type: %v", err)
	}
	bad := sluice.QueueOf[func()]("functions")
	if _, err := bad.Enqueue(t.Context(), client, func() {}, sluice.EnqueueOptions{}); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("a payload that is no JSON: %v", err)
	}
}

func TestSettingsTakeEffectWithinOneInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, store := newClient(t)
		if _, err := client.Enqueue(t.Context(), job(sluice.EnqueueOptions{})); err != nil {
			t.Fatal(err)
		}
		other := sluice.NewClient(store, sluice.ClientOptions{})
		change := func(s *sluice.Settings) error { s.PayloadLimit = 1; return nil }
		if _, err := other.ChangeSettings(t.Context(), "q", ada, change); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Enqueue(t.Context(), job(sluice.EnqueueOptions{})); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("the process that made the change: %v", err)
		}
		time.Sleep(sluice.SettingsInterval)
		if _, err := client.Enqueue(t.Context(), job(sluice.EnqueueOptions{})); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("another process, an interval later: %v", err)
		}
	})
}

// flaky is a store whose settings cannot be read for a while.
type flaky struct {
	sluice.Store
	cut bool
}

func (f *flaky) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	if f.cut {
		return nil, sluice.ErrUnavailable
	}
	return f.Store.Queues(ctx, filter)
}

func TestLastGoodSettingsCountWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, store := newClient(t)
		settings := sluice.DefaultSettings()
		settings.MaxAttempts = 9
		if _, err := client.EnsureQueue(t.Context(), "q", settings, ada); err != nil {
			t.Fatal(err)
		}
		f := &flaky{Store: store, cut: true}
		live := sluice.NewLiveSettings(f, sluice.LiveOptions{})
		if _, err := live.Queue(t.Context(), "q"); !errors.Is(err, sluice.ErrUnavailable) {
			t.Errorf("never read: %v", err)
		}
		f.cut = false
		live.Forget()
		if q, err := live.Queue(t.Context(), "q"); err != nil || q.Settings.MaxAttempts != 9 {
			t.Errorf("read: %+v, %v", q, err)
		}
		f.cut = true
		time.Sleep(time.Hour)
		if q, err := live.Queue(t.Context(), "q"); err != nil || q.Settings.MaxAttempts != 9 {
			t.Errorf("while it is away: %+v, %v", q, err)
		}
		if _, err := live.Queue(t.Context(), "unknown"); !errors.Is(err, sluice.ErrUnavailable) {
			t.Errorf("another queue, never read: %v", err)
		}
		f.cut = false
		if q, err := live.Queue(t.Context(), "unknown"); err != nil || q.Version != 0 || q.Settings != sluice.DefaultSettings() {
			t.Errorf("a queue that is not stored: %+v, %v", q, err)
		}
	})
}

func TestUndoPutsTheSettingsBackAndCanBeUndone(t *testing.T) {
	t.Parallel()
	client, _ := newClient(t)
	set := func(n int) {
		t.Helper()
		if _, err := client.ChangeSettings(t.Context(), "q", ada, func(s *sluice.Settings) error { s.MaxAttempts = n; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := changes.Undo(t.Context(), client, "q", ada); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("undo of nothing: %v", err)
	}
	if _, err := client.EnsureQueue(t.Context(), "q", sluice.DefaultSettings(), ada); err != nil {
		t.Fatal(err)
	}
	set(5)
	set(7)
	for _, want := range []int{5, 7, 5} {
		q, err := changes.Undo(t.Context(), client, "q", ada)
		if err != nil || q.Settings.MaxAttempts != want {
			t.Fatalf("undone to %d, %v; want %d", q.Settings.MaxAttempts, err, want)
		}
	}
}

func TestJobsOfUndeclaredQueuesAreRefusedAlone(t *testing.T) {
	t.Parallel()
	client, store := newClient(t)
	policy, err := admission.Of(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	policy.Declared, policy.MaxQueues = true, 1
	if _, err := admission.Save(t.Context(), store, policy, sluice.Act{By: "ada"}); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("without a reason: %v", err)
	}
	if _, err := admission.Save(t.Context(), store, policy, sluice.Act{By: "ada", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.EnsureQueue(t.Context(), "mail", sluice.DefaultSettings(), ada); err != nil {
		t.Fatal(err)
	}
	var jobs []sluice.NewJob
	for _, queue := range []string{"mail", "mial", "mial"} {
		jobs = append(jobs, sluice.NewJob{Queue: queue, Payload: []byte("1")})
	}
	receipts, err := client.EnqueueMany(t.Context(), jobs)
	var batch *sluice.BatchError
	if !errors.As(err, &batch) || len(batch.Failed) != 2 || batch.Failed[0] != nil {
		t.Fatalf("error %v", err)
	}
	if _, err := client.Job(t.Context(), receipts[0].ID); err != nil {
		t.Errorf("the job of the declared queue: %v", err)
	}
	_, err = client.Enqueue(t.Context(), jobs[1])
	var unknown *admission.UnknownQueueError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "sluice settings set mial lease=1m") {
		t.Errorf("error %v", err)
	}
	var limit *admission.QueueLimitError
	if _, err := client.EnsureQueue(t.Context(), "other", sluice.DefaultSettings(), ada); !errors.As(err, &limit) || limit.Stored != 1 {
		t.Errorf("error %v", err)
	}
}

func TestEnsureQueueLeavesWhatAnOperatorChanged(t *testing.T) {
	t.Parallel()
	client, _ := newClient(t)
	mine := sluice.DefaultSettings()
	mine.MaxAttempts = 4
	if _, err := client.EnsureQueue(t.Context(), "q", mine, ada); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ChangeSettings(t.Context(), "q", ada, func(s *sluice.Settings) error { s.MaxAttempts = 8; return nil }); err != nil {
		t.Fatal(err)
	}
	q, err := client.EnsureQueue(t.Context(), "q", mine, ada)
	if err != nil || q.Settings.MaxAttempts != 8 {
		t.Errorf("max_attempts %d, %v", q.Settings.MaxAttempts, err)
	}
	for name, c := range map[string]struct {
		queue    string
		settings sluice.Settings
	}{"bad settings": {"q2", sluice.Settings{}}, "a bad name": {"no blanks", mine}, "an internal name": {"sluice.mine", mine}} {
		if _, err := client.EnsureQueue(t.Context(), c.queue, c.settings, ada); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInternalQueuesAreSluicesOwn(t *testing.T) {
	t.Parallel()
	client, store := newClient(t)
	for _, queue := range []string{"sluice.notify.hook", "sluice."} {
		_, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte("1")})
		if !errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), "reserved for Sluice itself") {
			t.Errorf("enqueue into %s: %v", queue, err)
		}
		if err := sluice.CheckQueueName(queue); err != nil {
			t.Errorf("%s: %v", queue, err)
		}
	}
	for _, queue := range []string{"sluice", "sluice-1", "Sluice.x", "my.sluice."} {
		if sluice.IsInternalQueue(queue) || sluice.CheckOwnQueueName(queue) != nil {
			t.Errorf("%s is reserved", queue)
		}
	}
	made, err := store.SaveQueue(t.Context(), sluice.Queue{Name: "sluice.notify.hook", Settings: sluice.DefaultSettings()}, ada)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := client.ChangeSettings(t.Context(), made.Name, ada, func(s *sluice.Settings) error { s.Backoff.Max = time.Hour; return nil })
	if err != nil || changed.Settings.Backoff.Max != time.Hour {
		t.Errorf("an operator's change gives %+v, %v", changed.Settings, err)
	}
}

// pedant is a payload checker that returns the errors that a test sets.
type pedant struct{ compile, check error }

func (p pedant) Compile(string) error       { return p.compile }
func (p pedant) Check(string, []byte) error { return p.check }

func TestPayloadsAreCheckedAgainstTheQueuesSchema(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	client := func(p sluice.PayloadChecker) *sluice.Client {
		return sluice.NewClient(store, sluice.ClientOptions{PayloadChecker: p})
	}
	settings := sluice.DefaultSettings()
	settings.PayloadSchema = `{"type":"object"}`
	if _, err := client(pedant{compile: errors.New("no schema")}).EnsureQueue(t.Context(), "q", settings, ada); !errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), "payload_schema: no schema") {
		t.Errorf("a schema that is none: %v", err)
	}
	if _, err := client(pedant{}).EnsureQueue(t.Context(), "q", settings, ada); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		checker sluice.PayloadChecker
		want    string
	}{
		"it matches":     {pedant{}, ""},
		"it does not":    {pedant{check: errors.New("/cents is missing")}, "/cents is missing"},
		"nobody can say": {nil, "no PayloadChecker"},
	} {
		_, err := client(c.checker).Enqueue(t.Context(), job(sluice.EnqueueOptions{}))
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestActsNeedToSayWhoAndForARequeueWhy(t *testing.T) {
	t.Parallel()
	client, _ := newClient(t)
	receipt, err := client.Enqueue(t.Context(), job(sluice.EnqueueOptions{Delay: time.Hour}))
	if err != nil {
		t.Fatal(err)
	}
	ids := []sluice.ID{receipt.ID}
	for name, err := range map[string]error{
		"nobody":             client.Cancel(t.Context(), ids, sluice.Act{}),
		"a line break":       client.Cancel(t.Context(), ids, sluice.Act{By: "a\nb"}),
		"a reason too long":  client.Cancel(t.Context(), ids, sluice.Act{By: "ada", Reason: strings.Repeat("x", 2000)}),
		"no reason":          client.Requeue(t.Context(), ids, sluice.Act{By: "ada"}),
		"a tier without who": client.Pause(t.Context(), "q", sluice.Act{}),
	} {
		if !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := client.RunNow(t.Context(), ids, ada); err != nil {
		t.Error(err)
	}
	if err := client.Cancel(t.Context(), nil, ada); err != nil {
		t.Errorf("nothing to do: %v", err)
	}
	err = client.Cancel(t.Context(), []sluice.ID{receipt.ID, sluice.NewID()}, ada)
	var batch *sluice.BatchError
	if !errors.As(err, &batch) || len(batch.Failed) != 1 || !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("one of two: %v", err)
	}
	if err := client.Requeue(t.Context(), ids, ada); err != nil {
		t.Error(err)
	}
	if err := client.Cancel(t.Context(), ids, ada); err != nil {
		t.Error(err)
	}
	if err := client.Delete(t.Context(), ids, ada); err != nil {
		t.Error(err)
	}
	if _, err := client.Attempts(t.Context(), receipt.ID); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("after it was pruned: %v", err)
	}
}

func TestPageSizesAreBounded(t *testing.T) {
	t.Parallel()
	client, _ := newClient(t)
	for _, limit := range []int{-1, 10_001} {
		if _, err := client.Jobs(t.Context(), sluice.JobFilter{Limit: limit}); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("jobs, limit %d: %v", limit, err)
		}
		if _, err := client.Audit(t.Context(), sluice.AuditFilter{Limit: limit}); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("audit, limit %d: %v", limit, err)
		}
	}
	if _, err := client.Depth(t.Context(), "q"); err != nil {
		t.Error(err)
	}
}

func TestLabelSaysWhatAQueuedJobWaitsFor(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for want, j := range map[string]sluice.Job{
		"ready":     {State: sluice.StateQueued, DueAt: now},
		"scheduled": {State: sluice.StateQueued, DueAt: now.Add(time.Hour)},
		"retrying":  {State: sluice.StateQueued, DueAt: now.Add(time.Hour), Attempts: 1},
		"blocked":   {State: sluice.StateQueued, DueAt: now, BlockedBy: sluice.NewID()},
		"claimed":   {State: sluice.StateClaimed},
	} {
		if got := j.Label(now); got != want {
			t.Errorf("label %s, want %s", got, want)
		}
	}
}

func FuzzEnqueuePayload(f *testing.F) {
	for _, seed := range []string{`{}`, `null`, `"\u0000"`, `{"a":12345678901234567890}`, "\xff", `[`, ``, ` 1 `, `"\ud800"`} {
		f.Add([]byte(seed), "tenant", "key")
	}
	f.Fuzz(func(t *testing.T, payload []byte, tenant, key string) {
		store := memory.New(memory.Options{})
		client := sluice.NewClient(store, sluice.ClientOptions{})
		receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: payload, EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant, Key: key}})
		if err != nil {
			if !errors.Is(err, sluice.ErrInvalid) {
				t.Errorf("refused, but not as invalid: %v", err)
			}
			return
		}
		stored, err := client.Job(t.Context(), receipt.ID)
		if err != nil || string(stored.Payload) != string(payload) || !json.Valid(stored.Payload) || stored.Tenant != tenant || stored.Key != key {
			t.Errorf("stored %q of %q with %q, %v", stored.Payload, stored.Tenant, stored.Key, err)
		}
	})
}

// deaf stores the first jobs, but answers that the store is unavailable. Later calls work.
type deaf struct {
	sluice.Store
	heard bool
}

func (d *deaf) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	receipts, err := d.Store.Enqueue(ctx, jobs)
	if d.heard || err != nil {
		return receipts, err
	}
	d.heard = true
	return nil, fmt.Errorf("enqueue: %w", sluice.ErrUnavailable)
}

func TestEnqueueWhoseAnswerIsLostCanBeSentAgain(t *testing.T) {
	t.Parallel()
	client := sluice.NewClient(&deaf{Store: memory.New(memory.Options{})}, sluice.ClientOptions{})
	job := sluice.NewJob{Queue: "q", Payload: []byte(`{}`)}
	receipt, err := client.Enqueue(t.Context(), job)
	var failed *sluice.EnqueueError
	if !errors.As(err, &failed) || !errors.Is(err, sluice.ErrUnavailable) {
		t.Fatalf("the error is %v", err)
	}
	if receipt.ID.IsZero() || len(failed.IDs) != 1 || failed.IDs[0] != receipt.ID {
		t.Fatalf("the receipt has the id %s, the error %v", receipt.ID, failed.IDs)
	}
	job.ID = receipt.ID
	again, err := client.Enqueue(t.Context(), job)
	if err != nil || !again.Duplicate || again.ID != receipt.ID {
		t.Fatalf("sent again: %+v, %v", again, err)
	}
}
