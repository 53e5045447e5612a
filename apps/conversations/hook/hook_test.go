package hook_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/hook"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/schema"
)

const conversation = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

func open(t *testing.T) *records.Database {
	t.Helper()
	db, err := records.Prepare(t.Context(), filepath.Join(t.TempDir(), "c.db"), schema.New())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := stages.Ensure(t.Context(), db.Client, stages.Presets()); err != nil {
		t.Fatal(err)
	}
	return db
}

func read(t *testing.T, text string) hook.Event {
	t.Helper()
	e, err := hook.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestMalformedEventsAreRefusedWithoutQuotingThem(t *testing.T) {
	t.Parallel()
	const secret = "hunter2secret"
	for name, text := range map[string]string{
		"empty":                       "",
		"not JSON":                    secret,
		"a cut one":                   `{"event":"UserPromptSubmit","content":"` + secret,
		"a list":                      `["` + secret + `"]`,
		"a field of another kind":     `{"event":"UserPromptSubmit","conversation_id":"` + conversation + `","content":{"` + secret + `":1}}`,
		"a conversation that is text": `{"event":"UserPromptSubmit","conversation_id":"` + secret + `","content":"x"}`,
		"an id that is text":          `{"event":"UserPromptSubmit","conversation_id":"` + conversation + `","id":"` + secret + `","content":"x"}`,
		"an event that is text":       `{"event":"my ` + secret + `","conversation_id":"` + conversation + `","content":"x"}`,
		"a role that is text":         `{"event":"Stop","conversation_id":"` + conversation + `","role":"` + secret + `","content":"x"}`,
		"no content":                  `{"event":"Stop","conversation_id":"` + conversation + `"}`,
		"too long":                    `{"event":"Stop","content":"` + strings.Repeat(secret, hook.MaxEvent/10) + `"}`,
		"SQL as a conversation":       `{"event":"Stop","conversation_id":"x'; drop table message; --","content":"x"}`,
	} {
		_, err := hook.Read(strings.NewReader(text))
		if !errors.Is(err, hook.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "drop") {
			t.Errorf("%s: the error quotes the event: %v", name, err)
		}
	}
}

func TestEventOfClaudeCodeIsUnderstood(t *testing.T) {
	t.Parallel()
	e := read(t, `{"session_id":"6f1c2e0a-7d64-4a1b-9a46-2f0f6a3f3c11","hook_event_name":"UserPromptSubmit","prompt":"hello","cwd":"/home/ann"}`)
	if e.Conversation != "6f1c2e0a-7d64-4a1b-9a46-2f0f6a3f3c11" || e.Name != "UserPromptSubmit" || e.Content != "hello" || e.Role != "user" {
		t.Errorf("read %+v", e)
	}
}

// TestMessageAndJobAreStoredTogether stores an event twice. The store then has one message, without secrets, and one
// job.
func TestMessageAndJobAreStoredTogether(t *testing.T) {
	t.Parallel()
	db, began := open(t), time.Now()
	e := read(t, `{"event":"UserPromptSubmit","conversation_id":"`+conversation+`","id":"01ARZ3NDEKTSV4RRFFQ69G5FAW","content":"mail john@example.com, key sk_live_a1B2c3D4e5F6g7H8i9J0"}`)
	for i := range 2 { // the second event is a repetition
		taken, err := hook.Store(t.Context(), db, e, []byte("key"))
		if err != nil || taken.Duplicate != (i == 1) || taken.Removed["email"] != 1 || taken.Removed["vendor_key"] != 1 {
			t.Fatalf("took %+v, %v", taken, err)
		}
	}
	messages, err := db.ToValidate(t.Context(), conversation)
	if err != nil || len(messages) != 1 || messages[0].Content != "mail [redacted:email], key [redacted:vendor_key]" {
		t.Errorf("messages %+v, %v", messages, err)
	}
	var said int64
	if err := db.Store.DB().QueryRowContext(t.Context(), "select created_at from message").Scan(&said); err != nil {
		t.Fatal(err)
	}
	if at := time.UnixMicro(said); at.Before(began.Truncate(time.Microsecond)) || at.After(time.Now()) {
		t.Errorf("the message was said at %s by its row, after %s", at, began)
	}
	jobs := jobsOf(t, db)
	if len(jobs) != 1 || jobs[0].Priority != 1 || jobs[0].Key != "sanitize-ai-validation-"+conversation {
		t.Fatalf("jobs %+v", jobs)
	}
	job, err := db.Client.Job(t.Context(), jobs[0].ID)
	if err != nil || string(job.Payload) != `{"conversation_id":"`+conversation+`","sanitization_version":"1.0.0"}` {
		t.Errorf("payload %s, %v", job.Payload, err)
	}
}

func TestJobThatIsRefusedLeavesNoMessage(t *testing.T) {
	t.Parallel()
	db := open(t)
	_, err := db.Client.ChangeSettings(t.Context(), stages.Validation.Name(), sluice.Act{By: "test", Reason: "refuse all"}, func(s *sluice.Settings) error {
		s.PayloadSchema = `{"type":"null"}`
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hook.Store(t.Context(), db, read(t, `{"event":"Stop","conversation_id":"`+conversation+`","content":"x"}`), nil); !errors.Is(err, sluice.ErrInvalid) {
		t.Fatalf("the job was not refused: %v", err)
	}
	if messages, err := db.ToValidate(t.Context(), conversation); err != nil || len(messages) > 0 {
		t.Errorf("messages %+v, %v", messages, err)
	}
}

func TestHashOfASecretNeedsTheKey(t *testing.T) {
	t.Parallel()
	if hook.Hash([]byte("a"), "123-45-6789") == hook.Hash([]byte("b"), "123-45-6789") {
		t.Error("two keys give the same hash")
	}
}

func jobsOf(t *testing.T, db *records.Database) []sluice.Job {
	t.Helper()
	page, err := db.Client.Jobs(context.WithoutCancel(t.Context()), sluice.JobFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return page.Jobs
}
