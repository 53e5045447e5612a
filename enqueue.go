package sluice

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what a job may carry. Each is checked at enqueue, where the caller can still act.
const (
	// MaxTenantBytes and MaxKeyBytes bound those names.
	MaxTenantBytes = 128
	MaxKeyBytes    = 255
	// MaxLabels bounds how many labels a job has, MaxLabelBytes the length of a label's name and
	// of its value.
	MaxLabels     = 16
	MaxLabelBytes = 255
	// MaxBatch is how many jobs one call of EnqueueMany stores at the most.
	MaxBatch = 100_000
	// DefaultPriority is the middle of 1 (first) to 10 (last).
	DefaultPriority = 5

	// maxBatchBytes is how long their payloads may be together.
	maxBatchBytes = 512 << 20
)

// KeyScope says how long a key keeps others out.
type KeyScope string

// The scopes of a key.
const (
	// WhileUnfinished, the default: until the job that holds it is completed, dead or cancelled.
	WhileUnfinished KeyScope = "unfinished"
	// ForWindow: for KeyWindow from the enqueue on, finished or not.
	ForWindow KeyScope = "window"
	// ForEver: as long as the store exists.
	ForEver KeyScope = "forever"
)

// OnDuplicate says what becomes of a job whose key another job holds.
type OnDuplicate string

// What may become of a duplicate.
const (
	// Keep, the default: the first job stays, and its id is the receipt's.
	Keep OnDuplicate = "keep"
	// Replace: if the first job still waits, it is cancelled and this one takes its place. If it
	// runs or has ended, Replace is Keep.
	Replace OnDuplicate = "replace"
	// Coalesce: if the first job has begun, this one is stored to run once after it; further ones meet
	// in that later run. A job that waits and was never handed out takes over the payload and the labels
	// of each that meets in it, so that the newest is never lost; its id, place and due time stay.
	Coalesce OnDuplicate = "coalesce"
)

// EnqueueOptions are what a producer may say about a job. The zero value is a job without a
// tenant, due at once, of middle priority.
type EnqueueOptions struct {
	// ID names the job. Default: a new one. A caller that keeps the id may send the same job again
	// after a lost answer, and finds the first.
	ID ID
	// Tenant is whom the job belongs to. Default: nobody.
	Tenant string
	// Key is the idempotency key, unique within the queue and the scope. Default: none.
	Key string
	// KeyScope says how long the key keeps others out. Default WhileUnfinished.
	KeyScope KeyScope
	// KeyWindow is the length of ForWindow.
	KeyWindow time.Duration
	// OnDuplicate says what becomes of this job if the key is taken. Default Keep.
	OnDuplicate OnDuplicate
	// DueAt is when the job may start, never earlier. Default: now. Not together with Delay.
	DueAt time.Time
	// Delay is a DueAt counted from now, by the store's clock.
	Delay time.Duration
	// Priority is 1 (first) to 10 (last). Default 5.
	Priority int
	// ExpiresAt cancels the job if it waits then, or comes back to wait later. Default: never.
	ExpiresAt time.Time
	// Labels are free names and values to find jobs by.
	Labels map[string]string
	// MaxAttempts buries the job at this many failed attempts. Default: the queue's setting.
	MaxAttempts int
	// OrderKey lets the jobs of the queue that share it run one at a time, in the order in which they
	// were enqueued. Default: none.
	OrderKey string
	// After names jobs that must have completed before this one runs, at most MaxAfter. Each is stored
	// already, or is in the same call of EnqueueMany; of one that came back as a duplicate there, the
	// job that holds its key is meant. Default: none.
	After []ID
	// AfterFailure says what becomes of this job when one of After dies or is cancelled. Default
	// FailureCancels.
	AfterFailure AfterFailure
}

// NewJob is a job to enqueue.
type NewJob struct {
	// Queue is the named lane. Required: 1 to 64 letters, digits and . _ : -, of which the first is
	// a letter or a digit.
	Queue string
	// Payload is the body: valid JSON in UTF-8, at most the queue's payload limit. Required.
	Payload json.RawMessage
	EnqueueOptions

	written bool // by json.Marshal, which writes only what is valid
}

// Receipt tells what became of an enqueue.
type Receipt struct {
	// ID is the job's; for a duplicate, that of the job which holds the key.
	ID ID `json:"id"`
	// Duplicate reports that the job was not stored, because another holds its key or its id.
	Duplicate bool `json:"duplicate"`
	// Replaced is the waiting job that this one took the place of; zero: none.
	Replaced ID `json:"replaced,omitzero"`
}

// CheckQueueName says whether a queue may have this name, as an ErrInvalid.
func CheckQueueName(name string) error {
	if !isQueueName(name) {
		return invalid("queue", fmt.Sprintf("%.80q must be 1 to 64 letters, digits and . _ : -, the first a letter or a digit", name))
	}
	return nil
}

// maxQueueName is how long the name of a queue may be.
const maxQueueName = 64

// isQueueName is a loop and no regular expression because each job of a batch is checked.
func isQueueName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letterOrDigit := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letterOrDigit && (i == 0 || !strings.ContainsRune("._:-", rune(c))) {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= maxQueueName
}

// check refuses what no store could keep; settings of the queue are checked by the client.
func (j NewJob) check() error {
	if err := CheckQueueName(j.Queue); err != nil {
		return err
	}
	if err := checkName("tenant", j.Tenant, MaxTenantBytes); err != nil {
		return err
	}
	if err := j.checkKey(); err != nil {
		return err
	}
	if err := j.checkOrder(); err != nil {
		return err
	}
	switch {
	case j.Priority < 0 || j.Priority > 10:
		return invalid("priority", fmt.Sprintf("%d is not from 1 (first) to 10 (last)", j.Priority))
	case j.MaxAttempts < 0 || j.MaxAttempts > maxCount:
		return invalid("max_attempts", fmt.Sprintf("%d is not from 1 to %d", j.MaxAttempts, maxCount))
	case j.Delay < 0:
		return invalid("delay", fmt.Sprintf("%s is negative", j.Delay))
	case j.Delay > 0 && !j.DueAt.IsZero():
		return invalid("delay", "due_at and delay say the same thing; give one of them")
	case !j.DueAt.IsZero() && !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(j.DueAt):
		return invalid("expires_at", "the job would expire before it is due")
	}
	for field, at := range map[string]time.Time{"due_at": j.DueAt, "expires_at": j.ExpiresAt} {
		if err := checkInstant(field, at); err != nil {
			return err
		}
	}
	return j.checkLabels()
}

// checkExpiry refuses a job that would expire before it is due, by the store's clock; zero: that is not known yet.
func (j NewJob) checkExpiry(now time.Time) error {
	switch {
	case now.IsZero() || j.ExpiresAt.IsZero():
		return nil
	case !j.ExpiresAt.After(now):
		return invalid("expires_at", "it has passed")
	case j.Delay > 0 && !j.ExpiresAt.After(now.Add(j.Delay)):
		return invalid("expires_at", "the job would expire before it is due")
	}
	return nil
}

// checkInstant checks that every store can keep an instant. A zero one says nothing.
func checkInstant(field string, at time.Time) error {
	if year := at.UTC().Year(); !at.IsZero() && (year < 1970 || year > 9999) {
		return invalid(field, fmt.Sprintf("the year %d is not from 1970 to 9999", year))
	}
	return nil
}

func (j NewJob) checkKey() error {
	if err := checkName("key", j.Key, MaxKeyBytes); err != nil {
		return err
	}
	if j.Key == "" {
		if j.KeyScope != "" || j.KeyWindow != 0 || j.OnDuplicate != "" {
			return invalid("key", "a key scope, key window or on-duplicate rule needs a key")
		}
		return nil
	}
	switch j.KeyScope {
	case "", WhileUnfinished, ForEver:
		if j.KeyWindow != 0 {
			return invalid("key_window", fmt.Sprintf("only the key scope %q has a window", ForWindow))
		}
	case ForWindow:
		if j.KeyWindow <= 0 {
			return invalid("key_window", fmt.Sprintf("the key scope %q needs a window longer than 0", ForWindow))
		}
	default:
		return invalid("key_scope", fmt.Sprintf("%.40q is none of %s, %s, %s", j.KeyScope, WhileUnfinished, ForWindow, ForEver))
	}
	switch j.OnDuplicate {
	case "", Keep, Replace:
	case Coalesce:
		if j.KeyScope != "" && j.KeyScope != WhileUnfinished {
			return invalid("on_duplicate", fmt.Sprintf("%s needs the key scope %s", Coalesce, WhileUnfinished))
		}
	default:
		return invalid("on_duplicate", fmt.Sprintf("%.40q is none of %s, %s, %s", j.OnDuplicate, Keep, Replace, Coalesce))
	}
	return nil
}

func (j NewJob) checkLabels() error {
	if len(j.Labels) > MaxLabels {
		return invalid("labels", fmt.Sprintf("%d labels are more than %d", len(j.Labels), MaxLabels))
	}
	for name, value := range j.Labels {
		if name == "" {
			return invalid("labels", "a label needs a name")
		}
		if err := checkName("labels", name, MaxLabelBytes); err != nil {
			return err
		}
		if err := checkName("labels", value, MaxLabelBytes); err != nil {
			return err
		}
	}
	return nil
}

// checkName accepts an empty name; where one is required, the caller says so.
// CheckTenantName says which rule of tenants' names a name breaks, as an [ErrInvalid]: at most MaxTenantBytes, and no
// characters that cannot be seen. The empty name is nobody's, and fine.
func CheckTenantName(name string) error { return checkName("tenant", name, MaxTenantBytes) }

func checkName(field, name string, limit int) error {
	if len(name) > limit {
		return invalid(field, fmt.Sprintf("%d bytes are more than %d", len(name), limit))
	}
	if !utf8.ValidString(name) {
		return invalid(field, "it is not valid UTF-8")
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return invalid(field, fmt.Sprintf("%q has a control character", name))
		}
		if unicode.Is(unicode.Cf, r) { // two names that look alike, or one that reads backwards
			return invalid(field, fmt.Sprintf("%q has a character that cannot be seen (%U)", name, r))
		}
	}
	return nil
}

// checkPayload refuses what is not JSON in UTF-8, byte for byte as it will be read again.
func (j NewJob) checkPayload(limit int) error {
	payload := j.Payload
	switch {
	case len(payload) == 0:
		return invalid("payload", "it is missing; it must be JSON")
	case len(payload) > limit:
		return invalid("payload", fmt.Sprintf("%d bytes are more than the queue's payload_limit of %d", len(payload), limit))
	case !utf8.Valid(payload):
		return invalid("payload", "it is not valid UTF-8")
	case j.written:
		return nil
	case !json.Valid(payload):
		return invalid("payload", "it is not valid JSON: "+jsonFault(payload))
	}
	return nil
}

func jsonFault(payload []byte) string {
	var any json.RawMessage
	if err := json.Unmarshal(payload, &any); err != nil {
		return err.Error()
	}
	return "unknown fault"
}
