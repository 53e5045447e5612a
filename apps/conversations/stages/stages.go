// Package stages names the three stages that a conversation goes through: their queues, what their jobs carry, and how the
// queues behave at first. The hook enqueues the first, and each enqueues the next.
package stages

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// Validate is the work of looking at the sanitized messages of a conversation once more. Which messages those are
// is found when it is done, so that messages that come while it waits are in it.
type Validate struct {
	ConversationID      string `json:"conversation_id"`
	SanitizationVersion string `json:"sanitization_version"`
}

// Extract is the work of finding what was learnt in a conversation.
type Extract struct {
	ConversationID string `json:"conversation_id"`
	// MinConfidence is from 0 to 1; learnings of less are left out.
	MinConfidence float64 `json:"min_confidence"`
	// Categories are those that are wanted; none: all.
	Categories []string `json:"categories"`
}

// Upload is the work of bringing a learning to IPFS and to a chain.
type Upload struct {
	LearningID   string `json:"learning_id"`
	IPFSEndpoint string `json:"ipfs_endpoint"`
	Chain        Chain  `json:"chain_config"`
}

// Chain says where a learning is recorded.
type Chain struct {
	RPCURL   string `json:"rpc_url"`
	Contract string `json:"contract_address"`
	// PrivateKeyRef says where the key is, env:NAME or file:PATH. The key itself is nowhere in the queue.
	PrivateKeyRef string `json:"private_key_ref"`
}

// The queues.
var (
	Validation = sluice.QueueOf[Validate]("sanitize_ai_validation")
	Extraction = sluice.QueueOf[Extract]("extract_learning")
	Uploading  = sluice.QueueOf[Upload]("mine_upload")
)

// The priorities: what protects people comes first, what can wait last (C-33…C-35).
const (
	validationPriority = 1
	extractionPriority = 5
	uploadingPriority  = 10
)

// IsID reports whether a text is a ULID or a UUID, and so neither raw text nor anything else (C-96, S-6). It is what idSchema
// says. The hook's caller waits, so no regular expression is compiled for it.
func IsID(text string) bool {
	if len(text) == 26 {
		return strings.Trim(text, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ""
	}
	parts := strings.Split(text, "-")
	return len(text) == 36 && len(parts) == 5 && len(parts[0]) == 8 && len(parts[1]) == 4 && len(parts[2]) == 4 && len(parts[3]) == 4 &&
		strings.Trim(strings.Join(parts, ""), "0123456789abcdef") == ""
}

// IsVersion reports whether a text is a version of the rules.
func IsVersion(text string) bool {
	return len(text) >= 1 && len(text) <= 20 && strings.Trim(text, "0123456789abcdefghijklmnopqrstuvwxyz.") == ""
}

// NewValidation makes the job that looks at a conversation. One that waits takes further messages along; behind one that
// runs there is one more.
func NewValidation(conversation, version string) (sluice.NewJob, error) {
	return Validation.NewJob(Validate{conversation, version}, sluice.EnqueueOptions{
		Key: "sanitize-ai-validation-" + conversation, OnDuplicate: sluice.Coalesce, Priority: validationPriority,
	})
}

// NewExtraction makes the job that learns from a conversation.
func NewExtraction(e Extract) (sluice.NewJob, error) {
	return Extraction.NewJob(e, sluice.EnqueueOptions{
		Key: "extract-learning-" + e.ConversationID, OnDuplicate: sluice.Coalesce, Priority: extractionPriority,
	})
}

// NewUpload makes the job that uploads a learning, once for ever.
func NewUpload(u Upload) (sluice.NewJob, error) {
	return Uploading.NewJob(u, sluice.EnqueueOptions{Key: "upload-" + u.LearningID, KeyScope: sluice.ForEver, Priority: uploadingPriority})
}

const (
	idSchema     = `{"type":"string","pattern":"^(?:[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$"}`
	urlSchema    = `{"type":"string","pattern":"^https?://[^@\\s]+$","maxLength":300}`
	objectSchema = `{"type":"object","additionalProperties":false,`
)

// schemas are those of the payloads. They are checked at enqueue, and again before a handler sees them.
var schemas = map[string]string{
	Validation.Name(): objectSchema + `"required":["conversation_id","sanitization_version"],"properties":{
		"conversation_id":` + idSchema + `,"sanitization_version":{"type":"string","pattern":"^[0-9a-z.]{1,20}$"}}}`,
	Extraction.Name(): objectSchema + `"required":["conversation_id","min_confidence"],"properties":{
		"conversation_id":` + idSchema + `,"min_confidence":{"type":"number","minimum":0,"maximum":1},
		"categories":{"type":["array","null"],"maxItems":20,"items":{"type":"string","pattern":"^[a-z_]{1,40}$"}}}}`,
	Uploading.Name(): objectSchema + `"required":["learning_id","ipfs_endpoint","chain_config"],"properties":{
		"learning_id":` + idSchema + `,"ipfs_endpoint":` + urlSchema + `,
		"chain_config":` + objectSchema + `"required":["rpc_url","contract_address","private_key_ref"],"properties":{
			"rpc_url":` + urlSchema + `,"contract_address":{"type":"string","pattern":"^0x[0-9a-fA-F]{40}$"},
			"private_key_ref":{"type":"string","pattern":"^(?:env:[A-Za-z_][A-Za-z0-9_]{0,100}|file:/.{1,300})$"}}}}}`,
}

// Presets are the settings of the queues at first (C-33…C-35, C-37).
func Presets() map[string]sluice.Settings {
	presets := make(map[string]sluice.Settings)
	for _, p := range []struct {
		queue    string
		attempts int
		timeout  time.Duration
	}{
		{Validation.Name(), 3, 30 * time.Second},
		{Extraction.Name(), 3, time.Minute},
		{Uploading.Name(), 5, 2 * time.Minute},
	} {
		s := sluice.DefaultSettings()
		s.MaxAttempts, s.Timeout, s.PayloadSchema = p.attempts, p.timeout, schemas[p.queue]
		s.Backoff = sluice.Backoff{Base: 2 * time.Second, Factor: 2, Max: time.Minute, Jitter: time.Second}
		presets[p.queue] = s
	}
	return presets
}

// Ensure makes the queues. One that is there keeps the settings that it has.
func Ensure(ctx context.Context, client *sluice.Client, presets map[string]sluice.Settings) error {
	for queue, settings := range presets {
		if _, err := client.EnsureQueue(ctx, queue, settings, sluice.Act{By: "conversations", Reason: "preset"}); err != nil {
			return fmt.Errorf("make queue %q: %w", queue, err)
		}
	}
	return nil
}
