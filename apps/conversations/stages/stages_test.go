package stages_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/schema"
)

const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

func TestPresetsAreThoseOfTheSource(t *testing.T) {
	t.Parallel()
	for queue, attempts := range map[string]int{"sanitize_ai_validation": 3, "extract_learning": 3, "mine_upload": 5} {
		s, there := stages.Presets()[queue]
		if !there || s.MaxAttempts != attempts || s.Lease.Seconds() != 60 || s.Check() != nil {
			t.Errorf("%s: %+v", queue, s)
		}
		if want := (sluice.Backoff{Base: 2 * time.Second, Factor: 2, Max: time.Minute, Jitter: time.Second}); s.Backoff != want {
			t.Errorf("%s: backoff %+v, want %+v", queue, s.Backoff, want)
		}
	}
	validation, _ := stages.NewValidation(id, "1.0.0")
	extraction, _ := stages.NewExtraction(stages.Extract{ConversationID: id})
	uploading, _ := stages.NewUpload(stages.Upload{LearningID: id})
	for _, c := range []struct {
		job      sluice.NewJob
		key      string
		priority int
	}{{validation, "sanitize-ai-validation-" + id, 1}, {extraction, "extract-learning-" + id, 5}, {uploading, "upload-" + id, 10}} {
		if c.job.Key != c.key || c.job.Priority != c.priority {
			t.Errorf("%s: key %s, priority %d", c.job.Queue, c.job.Key, c.job.Priority)
		}
	}
}

func TestIDsAreULIDsAndUUIDs(t *testing.T) {
	t.Parallel()
	for text, is := range map[string]bool{
		id: true, "6f1c2e0a-7d64-4a1b-9a46-2f0f6a3f3c11": true,
		"": false, "123-45-6789": false, strings.ToLower(id): false, id + "0": false, id[:25]: false, "01ARZ3NDEKTSV4RRFFQ69G5FAI": false, id + "\n": false,
	} {
		if stages.IsID(text) != is {
			t.Errorf("%q: %t", text, !is)
		}
	}
}

// TestPayloadsAreCheckedByTheirSchemas enqueues good and bad payloads in each stage.
func TestPayloadsAreCheckedByTheirSchemas(t *testing.T) {
	t.Parallel()
	db, err := records.Prepare(t.Context(), filepath.Join(t.TempDir(), "c.db"), schema.New())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := stages.Ensure(t.Context(), db.Client, stages.Presets()); err != nil {
		t.Fatal(err)
	}
	good := `{"learning_id":"` + id + `","ipfs_endpoint":"http://127.0.0.1:5001","chain_config":{"rpc_url":"https://rpc.example:8545","contract_address":"0x00000000000000000000000000000000000000aa","private_key_ref":"env:KEY"}}`
	bad := map[string]string{
		"a key itself":      strings.Replace(good, "env:KEY", "0x"+strings.Repeat("ab", 32), 1),
		"a key behind env":  strings.Replace(good, "env:KEY", "env:KEY=abc", 1),
		"a user in the URL": strings.Replace(good, "http://127", "http://user:pw@127", 1),
		"another scheme":    strings.Replace(good, "http://127", "file://127", 1),
		"no address":        strings.Replace(good, "0x00", "0xzz", 1),
		"an id that is SQL": strings.Replace(good, id, "1' or '1'='1", 1),
		"something more":    strings.Replace(good, `{"learning_id"`, `{"exec":"rm","learning_id"`, 1),
		"something less":    `{"learning_id":"` + id + `"}`,
		"something else":    `[]`,
	}
	for name, payload := range bad {
		_, err := db.Client.Enqueue(t.Context(), sluice.NewJob{Queue: stages.Uploading.Name(), Payload: []byte(payload)})
		if !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := db.Client.Enqueue(t.Context(), sluice.NewJob{Queue: stages.Uploading.Name(), Payload: []byte(good)}); err != nil {
		t.Errorf("a good one: %v", err)
	}
	for queue, payload := range map[string]string{
		stages.Validation.Name(): `{"conversation_id":"` + id + `","sanitization_version":"1.0.0","content":"raw"}`,
		stages.Extraction.Name(): `{"conversation_id":"` + id + `","min_confidence":2}`,
	} {
		if _, err := db.Client.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte(payload)}); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s: %v", queue, err)
		}
	}
}
