package batch

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Label is the label of a callback's job that has the ID of the batch.
const Label = "batch"

// Callback is a job that a batch enqueues when something has become of it.
type Callback struct {
	// Queue is the queue of the job. Required.
	Queue string `json:"queue"`
	// Payload is the payload, at most 64 KB. {{batch}} in it becomes the ID of the batch. Default: the ID and name of the
	// batch, the event, which is complete, success or death, and the counts at that instant.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Tenant and Priority are those of the job. Default: no tenant, [sluice.DefaultPriority].
	Tenant   string `json:"tenant,omitempty"`
	Priority int    `json:"priority,omitempty"`
}

// The events of callbacks.
const (
	eventComplete = "complete"
	eventSuccess  = "success"
	eventDeath    = "death"
)

const (
	batchText      = "{{batch}}"
	maxPayload     = 64 << 10
	maxNameBytes   = 200
	maxReasonBytes = 900 // leaves room for the name of the batch
)

// check returns the rule that a new batch breaks, as a [sluice.ErrInvalid].
func (b Batch) check() error {
	if err := sluice.CheckTenantName(b.Name); err != nil && len(b.Name) <= maxNameBytes {
		return feature.Invalid("name", strings.TrimPrefix(err.Error(), "tenant: "))
	}
	if len(b.Name) > maxNameBytes {
		return feature.Invalid("name", fmt.Sprintf("%d bytes are more than %d", len(b.Name), maxNameBytes))
	}
	if b.Parent == b.ID {
		return feature.Invalid("parent", "a batch cannot be in itself")
	}
	for event, callback := range map[string]*Callback{eventComplete: b.OnComplete, eventSuccess: b.OnSuccess, eventDeath: b.OnDeath} {
		if callback == nil {
			continue
		}
		if len(callback.Payload) > maxPayload {
			return feature.Invalid("on_"+event, fmt.Sprintf("a payload of %d bytes is longer than %d", len(callback.Payload), maxPayload))
		}
		if len(callback.Payload) > 0 && !json.Valid(callback.Payload) {
			return feature.Invalid("on_"+event, "the payload must be JSON")
		}
		if err := callback.insert(b, event, time.Unix(1e9, 0)).Check(); err != nil {
			return fmt.Errorf("on_%s: %w", event, err)
		}
	}
	return nil
}

// insert makes the job of an event. A store stores it in the transaction that notes the event. If its ID followed from the batch, a
// producer could store another job with it before.
func (c Callback) insert(b Batch, event string, at time.Time) sluice.Insert {
	payload := json.RawMessage(strings.ReplaceAll(string(bytes.TrimSpace(c.Payload)), batchText, b.ID.String()))
	if len(payload) == 0 {
		payload = b.summary(event)
	}
	job := sluice.Insert{NewJob: sluice.NewJob{Queue: c.Queue, Payload: payload}}
	job.ID, job.Tenant, job.Priority = callbackID(at), c.Tenant, c.priority()
	job.Labels = map[string]string{Label: b.ID.String()}
	return job
}

// summary is the payload of a callback that has none.
func (b Batch) summary(event string) json.RawMessage {
	text, err := json.Marshal(struct {
		Batch sluice.ID `json:"batch"`
		Name  string    `json:"name,omitempty"`
		Event string    `json:"event"`
		Counts
	}{b.ID, b.Name, event, b.Counts})
	if err != nil { // an ID, texts and numbers
		panic(err)
	}
	return text
}

// callbackID makes an ID of an instant by the store's clock.
func callbackID(at time.Time) sluice.ID {
	id := sluice.NewID()
	binary.BigEndian.PutUint64(id[:8], uint64(max(0, at.UnixMilli()))<<16|binary.BigEndian.Uint64(id[:8])&0xffff)
	return id
}

// BySettings returns jobs as the settings of their queues say. An unknown queue has the defaults. Stores call it.
func BySettings(jobs []sluice.Insert, queues []sluice.Queue) []sluice.Insert {
	byName := make(map[string]sluice.Queue, len(queues))
	for _, q := range queues {
		byName[q.Name] = q
	}
	for i := range jobs {
		q := byName[jobs[i].Queue]
		jobs[i].AuditFull, jobs[i].ByTenant = q.Settings.Audit == sluice.AuditFull, q.ByTenant
	}
	return jobs
}

// QueuesOf lists the queues of jobs, each once. Stores call it.
func QueuesOf(jobs []sluice.Insert) []string {
	names := make(map[string]bool)
	for _, job := range jobs {
		names[job.Queue] = true
	}
	out := make([]string, 0, len(names))
	for name := range maps.Keys(names) {
		out = append(out, name)
	}
	return out
}
