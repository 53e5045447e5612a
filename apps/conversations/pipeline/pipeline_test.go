package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/apps/conversations/hook"
	"github.com/sluice-queue/sluice/apps/conversations/mind"
	"github.com/sluice-queue/sluice/apps/conversations/pipeline"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/schema"
)

const conversation = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

// house is a prepared file whose queues try failed jobs again at once.
type house struct {
	*testing.T
	db      *records.Database
	options pipeline.Options
}

func newHouse(t *testing.T) *house {
	t.Helper()
	db, err := records.Prepare(t.Context(), filepath.Join(t.TempDir(), "c.db"), schema.New())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	presets := stages.Presets()
	for queue, s := range presets {
		s.Backoff = sluice.Backoff{Base: time.Millisecond, Factor: 1, Max: time.Millisecond}
		presets[queue] = s
	}
	if err := stages.Ensure(t.Context(), db.Client, presets); err != nil {
		t.Fatal(err)
	}
	return &house{T: t, db: db, options: pipeline.Options{Logger: slog.New(slog.DiscardHandler)}}
}

func TestWorkIsWatched(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.options.Monitor = apptest.FreeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- pipeline.New(h.db, h.options).Run(ctx) }()
	h.say("what is said is worked on")
	apptest.Answers(t, "http://"+h.options.Monitor, map[string]string{
		"/healthz": "live", "/readyz": "upkeep", "/metrics": `sluice_moves_total{event="complete"`,
	})
	apptest.Answers(t, "http://"+h.options.Monitor, map[string]string{"/metrics": `sluice_moves_total{event="enqueue",queue="extract_learning",reason=""} 1`})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// say stores a message through the hook.
func (h *house) say(content string) {
	h.Helper()
	event := fmt.Sprintf(`{"event":"UserPromptSubmit","conversation_id":%q,"content":%q}`, conversation, content)
	e, err := hook.Read(strings.NewReader(event))
	if err == nil {
		_, err = hook.Store(h.Context(), h.db, e, nil)
	}
	if err != nil {
		h.Fatal(err)
	}
}

// work runs the stages until the newest job of a queue is in a state.
func (h *house) work(queue string, state sluice.State) sluice.Job {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 10*time.Minute)
	defer cancel()
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- pipeline.New(h.db, h.options).Run(working) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			h.Error(err)
		}
	}()
	return h.await(ctx, queue, state)
}

func (h *house) await(ctx context.Context, queue string, state sluice.State) sluice.Job {
	h.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		jobs := h.jobs(queue)
		if len(jobs) > 0 && jobs[0].State == state {
			job, err := h.db.Client.Job(ctx, jobs[0].ID)
			if err != nil {
				h.Fatal(err)
			}
			return job
		}
		select {
		case <-ctx.Done():
			h.Fatalf("no job of %s became %s: %+v", queue, state, jobs)
		case <-tick.C:
		}
	}
}

func (h *house) jobs(queue string) []sluice.Job {
	h.Helper()
	page, err := h.db.Client.Jobs(context.WithoutCancel(h.Context()), sluice.JobFilter{Queue: queue})
	if err != nil {
		h.Fatal(err)
	}
	return page.Jobs
}

const lesson = "The fix was to share one pool of connections between all handlers."

// TestEachStageEnqueuesTheNext follows a message through validation and extraction, up to the job of its upload.
func TestEachStageEnqueuesTheNext(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.options.Target = &stages.Upload{IPFSEndpoint: "http://127.0.0.1:1", Chain: stages.Chain{
		RPCURL: "http://127.0.0.1:1", Contract: "0x00000000000000000000000000000000000000aa", PrivateKeyRef: "env:NONE",
	}}
	h.say("My name is Ada Lovelace, john@example.com. " + lesson)
	if jobs := h.jobs(stages.Extraction.Name()); len(jobs) != 0 {
		t.Fatalf("extraction before validation: %+v", jobs)
	}
	extracted := h.work(stages.Extraction.Name(), sluice.StateCompleted)
	if string(extracted.Result) != `{"learnings":1,"duplicates":0,"unsure":0}` {
		t.Errorf("result %s", extracted.Result)
	}
	messages, err := h.db.Validated(t.Context(), conversation)
	if err != nil || len(messages) != 1 || strings.Contains(messages[0].Content, "Ada") || strings.Contains(messages[0].Content, "john") {
		t.Errorf("messages %+v, %v", messages, err)
	}
	found, err := h.db.Search(t.Context(), "pool connections", 10)
	if err != nil || len(found) != 1 {
		t.Fatalf("found %+v, %v", found, err)
	}
	uploads := h.jobs(stages.Uploading.Name())
	if len(uploads) != 1 || uploads[0].Key != "upload-"+found[0].ID || uploads[0].Priority != 10 {
		t.Errorf("uploads %+v", uploads)
	}
}

func TestWorkerTakesInTheSpool(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	later := filepath.Join(t.TempDir(), "later.db") // this file does not exist, so the hook spools the event
	event := fmt.Sprintf(`{"event":"UserPromptSubmit","conversation_id":%q,"content":%q}`, conversation, lesson)
	taken, err := hook.Take(t.Context(), strings.NewReader(event), hook.Options{DB: later})
	if err != nil || !taken.Spooled {
		t.Fatalf("took %+v, %v", taken, err)
	}
	if err := os.Rename(later+".spool", h.db.Path+".spool"); err != nil {
		t.Fatal(err)
	}
	h.work(stages.Extraction.Name(), sluice.StateCompleted)
	if left, err := hook.SpoolOf(h.db.Path).Waiting(); err != nil || left != 0 {
		t.Errorf("%d events are left, %v", left, err)
	}
}

// TestWorkThatIsDoneIsSkipped enqueues jobs for work that is done already.
func TestWorkThatIsDoneIsSkipped(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.say(lesson)
	h.work(stages.Extraction.Name(), sluice.StateCompleted)
	again, err := stages.NewValidation(conversation, hook.Version)
	if err != nil {
		t.Fatal(err)
	}
	extract, err := stages.NewExtraction(stages.Extract{ConversationID: conversation, MinConfidence: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.Client.EnqueueMany(t.Context(), []sluice.NewJob{again, extract}); err != nil {
		t.Fatal(err)
	}
	if job := h.work(stages.Validation.Name(), sluice.StateCompleted); string(job.Result) != `{"skipped":true,"reason":"already-validated"}` {
		t.Errorf("validation: %s", job.Result)
	}
	if job := h.work(stages.Extraction.Name(), sluice.StateCompleted); string(job.Result) != `{"skipped":true,"reason":"already-extracted"}` {
		t.Errorf("extraction: %s", job.Result)
	}
	h.say(lesson) // the same text in another message
	h.work(stages.Validation.Name(), sluice.StateCompleted)
	if job := h.work(stages.Extraction.Name(), sluice.StateCompleted); string(job.Result) != `{"learnings":0,"duplicates":2,"unsure":0}` {
		t.Errorf("extraction of a known one: %s", job.Result)
	}
}

// faulty is a Mind that fails a given number of times.
type faulty struct {
	mind.Local
	fails atomic.Int32
	err   error
}

func (f *faulty) Validate(ctx context.Context, messages []records.Message) ([]mind.Finding, error) {
	if f.fails.Add(-1) >= 0 {
		if f.err == nil {
			panic("panicked with password=hunter2!x")
		}
		return nil, f.err
	}
	return f.Local.Validate(ctx, messages)
}

// TestFailuresAreTriedAgainAndThenBuried counts the attempts of failing jobs, and checks that the texts of their errors
// are scrubbed.
func TestFailuresAreTriedAgainAndThenBuried(t *testing.T) {
	t.Parallel()
	leaky := errors.New("the API said: no such user ann@example.com, key sk_live_a1B2c3D4e5F6g7H8i9J0, host 203.0.113.7")
	for _, c := range []struct {
		name     string
		fails    int32
		err      error
		state    sluice.State
		attempts int
		text     string
	}{
		{"once", 1, leaky, sluice.StateCompleted, 1, ""},
		{"always", 100, leaky, sluice.StateDead, 3, "the API said: no such user [redacted:email], key [redacted:vendor_key], host 203.0.113.7"},
		{"panicking", 100, nil, sluice.StateDead, 3, "panic: panicked with password=[redacted:password]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			f := &faulty{err: c.err}
			f.fails.Store(c.fails)
			var log strings.Builder
			h.options.Mind, h.options.Logger = f, slog.New(slog.NewTextHandler(&log, nil))
			h.say("hello")
			job := h.work(stages.Validation.Name(), c.state)
			if job.Attempts != c.attempts || c.text != "" && job.Error != c.text {
				t.Errorf("attempts %d, error %q", job.Attempts, job.Error)
			}
			attempts, err := h.db.Client.Attempts(t.Context(), job.ID)
			if err != nil || len(attempts) != c.attempts {
				t.Errorf("%d attempts are told, %v", len(attempts), err)
			}
			for _, secret := range []string{"ann@", "sk_live_", "hunter2"} {
				if strings.Contains(fmt.Sprint(attempts)+log.String(), secret) {
					t.Errorf("%q is in the attempts or in the log:\n%s", secret, log.String())
				}
			}
		})
	}
}
