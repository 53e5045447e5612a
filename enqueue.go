package sluice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-queue/sluice/internal/jsonscan"
)

// Limits of a job. The client checks them at enqueue, so that the caller can still act.
const (
	// MaxTenantBytes is the most bytes of a tenant's name, and MaxKeyBytes of a key or an order key.
	MaxTenantBytes = 128
	MaxKeyBytes    = 255
	// MaxLabels is the most labels of a job. MaxLabelBytes is the most bytes of a label's name, and of its value.
	MaxLabels     = 16
	MaxLabelBytes = 255
	// MaxBatch is the most jobs of one call of [Client.EnqueueMany].
	MaxBatch = 100_000
	// DefaultPriority is the priority of a job that sets none, between 1 (first) and 10 (last).
	DefaultPriority = 5

	// maxReasonBytes is the most bytes of a reason that the audit keeps.
	maxReasonBytes, maxUnits = 1000, 1_000_000
	// maxBatchBytes is the most bytes of the payloads of a batch of 2 jobs or more.
	maxBatchBytes = 512 << 20
)

// KeyScope says how long a key refuses other jobs with the same key in the same queue.
type KeyScope string

// The scopes of a key.
const (
	// WhileUnfinished lets a key refuse other jobs until its job is completed, dead or cancelled. It is the
	// default.
	WhileUnfinished KeyScope = "unfinished"
	// ForWindow lets a key refuse other jobs for KeyWindow after the enqueue, even if its job has finished.
	ForWindow KeyScope = "window"
	// ForEver lets a key refuse other jobs as long as the store exists.
	ForEver KeyScope = "forever"
)

// OnDuplicate says how a store treats a job whose key another job has. Replace, Coalesce and Debounce touch no job of
// another tenant: if such a job holds the key, the new job is an [ErrInvalid].
type OnDuplicate string

// The rules for duplicates.
const (
	// Keep keeps the first job and stores no other. The receipt has the ID of the first job. It is the default.
	Keep OnDuplicate = "keep"
	// Replace cancels the first job if it still waits, and stores the new job in its place. If the first job runs
	// or has ended, Replace acts like Keep.
	Replace OnDuplicate = "replace"
	// Coalesce merges repeated jobs. If the first job has begun, the store keeps the new job to run once after it,
	// and further jobs merge into that later run.
	//
	// Jobs merge into a waiting job that nobody has claimed: it takes over payload, labels and, if it is due before that,
	// expiry of each, so the newest payload runs. Its ID, place and due time stay. With ForWindow, a job whose first has
	// begun waits for the end of the window: one job starts per window (throttle).
	Coalesce OnDuplicate = "coalesce"
	// Debounce is Coalesce, and each job puts off the waiting one to its own due time, at most KeyWindow after its enqueue.
	Debounce OnDuplicate = "debounce"
)

// EnqueueOptions says how a job is to run. The zero value is a job without a tenant, due at once, with the default
// priority.
type EnqueueOptions struct {
	// ID names the job. Default: a new ID. If you keep the ID, you can send the same job again after a lost answer,
	// and the store finds the first.
	ID ID
	// Tenant is the owner of the job, at most [MaxTenantBytes]. Default: none.
	Tenant string
	// Key is the idempotency key, unique within the queue and the scope, at most [MaxKeyBytes]. Default: none.
	Key string
	// KeyScope says how long the key refuses other jobs. Default: WhileUnfinished.
	KeyScope KeyScope
	// KeyWindow is how long a key with the scope ForWindow refuses other jobs. Required with that scope, optional with
	// Debounce, else not allowed.
	KeyWindow time.Duration
	// OnDuplicate says how the store treats this job if another job has the key. Default: Keep.
	OnDuplicate OnDuplicate
	// DueAt is the earliest start. Default: now. Set DueAt or Delay, not both.
	DueAt time.Time
	// Delay is the time from now to the earliest start, by the store's clock. Default: 0.
	Delay time.Duration
	// Priority is 1 (first) to 10 (last). Default: 5.
	Priority int
	// ExpiresAt cancels the job if the job waits at that time, or returns to waiting later. Default: never.
	ExpiresAt time.Time
	// Labels are names and values of your own to find jobs by, at most [MaxLabels]. Default: none.
	Labels map[string]string
	// MaxAttempts is how many failed attempts bury the job. Default: the queue's setting.
	MaxAttempts int
	// Timeout limits each attempt, or the run of an engine, in whole milliseconds, at most 30 days. Default: the
	// handler's option, then the queue's setting.
	Timeout time.Duration
	// OrderKey makes the jobs of a queue with the same order key run one at a time, in the order of their enqueue.
	// Default: none.
	OrderKey string
	// After lists jobs that must complete before this job runs, at most [MaxAfter]. Each is stored already, or is
	// in the same call of EnqueueMany. If a job of that call is a duplicate, this job runs after the job that holds
	// its key. Default: none.
	After []ID
	// AfterFailure says how this job goes on if a job of After dies or is cancelled. Default: FailureCancels.
	AfterFailure AfterFailure
	// AfterFailures are the rules for single jobs of After, at most [MaxAfterFailures]. Default: AfterFailure.
	AfterFailures map[ID]AfterFailure
	// Hold is the reason to hold the job from its enqueue on, at most 1,000 bytes. No claim takes a held job; see
	// package hold. Default: nobody holds the job.
	Hold string
	// Batch is the open batch that the job belongs to; see package batch. Default: none.
	Batch ID
	// LimitKey is the value, such as a host, by which limits that are per key bound the job; see package limit. Default: none.
	LimitKey string
	// Cost is the units, such as tokens, that the job takes of limits by cost, at most 1,000,000. Default: 1.
	Cost int
}

// NewJob is a job to enqueue.
type NewJob struct {
	// Queue is the name of the queue. Required: 1 to 64 letters, digits and . _ : -, of which the first is a letter
	// or a digit.
	Queue string
	// Payload is the body of the job: valid JSON in UTF-8, at most the queue's payload_limit, nested at most 500 deep. Required.
	Payload json.RawMessage
	EnqueueOptions

	written bool // json.Marshal made the payload, so it is valid JSON
}

// Receipt is the answer to an enqueue.
type Receipt struct {
	// ID is the job's ID. For a duplicate, ID is the ID of the job that has the key.
	ID ID `json:"id"`
	// Duplicate says that the store did not store the job, because another job has its key or its ID.
	Duplicate bool `json:"duplicate"`
	// Replaced is the waiting job that this job replaced. Zero: none.
	Replaced ID `json:"replaced,omitzero"`
}

// CheckQueueName returns an [ErrInvalid] if a queue must not have this name.
func CheckQueueName(name string) error {
	if !isQueueName(name) {
		return invalid("queue", fmt.Sprintf("%.80q must be 1 to 64 letters, digits and . _ : -, the first a letter or a digit", name))
	}
	return nil
}

// internalPrefix begins the names of the queues that Sluice makes for itself.
const internalPrefix = "sluice."

// IsInternalQueue reports whether a queue is Sluice's own: its name begins with "sluice.". Sluice alone makes such
// queues, enqueues into them and works on them; see package alert. An operator may look at their jobs, pause them
// and requeue their dead letters.
func IsInternalQueue(name string) bool { return strings.HasPrefix(name, internalPrefix) }

// CheckOwnQueueName returns an [ErrInvalid] if a program must not make, fill or work on a queue of this name. It is
// [CheckQueueName], and refuses internal queues.
func CheckOwnQueueName(name string) error {
	if IsInternalQueue(name) {
		return invalid("queue", fmt.Sprintf("%.80q begins with %s, which is reserved for Sluice itself; choose another name", name, internalPrefix))
	}
	return CheckQueueName(name)
}

// maxQueueName is the most bytes of a queue's name.
const maxQueueName = 64

// isQueueName reports whether a queue may have the name. It is a loop and no regular expression because the client
// checks every job of a batch.
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

// Check returns the first rule that the job breaks whatever its queue's settings are, as an [ErrInvalid]. A client
// checks each job at enqueue, by the settings too.
func (j NewJob) Check() error {
	err := cmp.Or(CheckOwnQueueName(j.Queue), checkName("tenant", j.Tenant, MaxTenantBytes), checkName("hold", j.Hold, maxReasonBytes), checkName("limit_key", j.LimitKey, MaxKeyBytes),
		j.checkKey(), j.checkOrder())
	if err != nil {
		return err
	}
	switch {
	case j.ID == maxID:
		return invalid("id", "the largest UUID names no job")
	case j.Priority < 0 || j.Priority > 10:
		return invalid("priority", fmt.Sprintf("%d must be from 1 (first) to 10 (last)", j.Priority))
	case j.MaxAttempts < 0 || j.MaxAttempts > maxCount:
		return invalid("max_attempts", fmt.Sprintf("%d must be from 1 to %d", j.MaxAttempts, maxCount))
	case j.Timeout < 0 || j.Timeout > 30*day || j.Timeout%time.Millisecond != 0:
		return invalid("timeout", fmt.Sprintf("%s must be from 1ms to 30d, in whole milliseconds", j.Timeout))
	case j.Cost < 0 || j.Cost > maxUnits:
		return invalid("cost", fmt.Sprintf("%d must be from 1 to %d", j.Cost, maxUnits))
	case j.Delay < 0:
		return invalid("delay", fmt.Sprintf("%s is negative", j.Delay))
	case j.Delay > 0 && !j.DueAt.IsZero():
		return invalid("delay", "due_at and delay say the same thing; give one of them")
	case !j.DueAt.IsZero() && !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(j.DueAt):
		return invalid("expires_at", "the job would expire before it is due")
	case !jsonscan.Shallow(j.Payload) && jsonscan.Fault(j.Payload) != "":
		return invalid("payload", jsonscan.Fault(j.Payload))
	}
	return cmp.Or(checkInstant("due_at", j.DueAt), checkInstant("expires_at", j.ExpiresAt), j.checkLabels())
}

// checkExpiry refuses a job that expires before it is due. Now is the store's clock; zero: not known yet.
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

// checkInstant returns an [ErrInvalid] if a store cannot keep an instant. The zero instant is valid.
func checkInstant(field string, at time.Time) error {
	if year := at.UTC().Year(); !at.IsZero() && (year < 1970 || year > 9999) {
		return invalid(field, fmt.Sprintf("the year %d must be from 1970 to 9999", year))
	}
	return nil
}

// checkKey checks the key and the options that need one.
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
		if j.KeyWindow != 0 && (j.OnDuplicate != Debounce || j.KeyWindow < 0) {
			return invalid("key_window", fmt.Sprintf("only the key scope %q has a window", ForWindow))
		}
	case ForWindow:
		if j.KeyWindow <= 0 {
			return invalid("key_window", fmt.Sprintf("the key scope %q needs a window longer than 0", ForWindow))
		}
	default:
		return invalid("key_scope", fmt.Sprintf("%.40q must be one of %s, %s, %s", j.KeyScope, WhileUnfinished, ForWindow, ForEver))
	}
	switch j.OnDuplicate {
	case "", Keep, Replace:
	case Coalesce, Debounce:
		if j.KeyScope == ForEver || j.KeyScope == ForWindow && (j.OnDuplicate == Debounce || j.Delay != 0 || !j.DueAt.IsZero()) {
			return invalid("on_duplicate", fmt.Sprintf("%s needs the key scope %s; only %s may have %s instead, without due_at and delay", j.OnDuplicate, WhileUnfinished, Coalesce, ForWindow))
		}
	default:
		return invalid("on_duplicate", fmt.Sprintf("%.40q must be one of %s, %s, %s, %s", j.OnDuplicate, Keep, Replace, Coalesce, Debounce))
	}
	return nil
}

// checkLabels checks the number of labels, and their names and values.
func (j NewJob) checkLabels() error {
	if len(j.Labels) > MaxLabels {
		return invalid("labels", fmt.Sprintf("%d labels must be at most %d", len(j.Labels), MaxLabels))
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

// CheckTenantName returns the rule that the name of a tenant breaks, as an [ErrInvalid]. A name has at most
// [MaxTenantBytes] and no control or invisible characters. The empty name is valid: it means no tenant.
func CheckTenantName(name string) error { return checkName("tenant", name, MaxTenantBytes) }

// checkName returns an [ErrInvalid] if a name is too long, not UTF-8, or has a control or invisible character. It
// accepts an empty name.
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
		if unicode.Is(unicode.Cf, r) { // two names that look alike, or a name that reads backwards
			return invalid(field, fmt.Sprintf("%q has a character that cannot be seen (%U)", name, r))
		}
	}
	return nil
}

// checkPayload refuses a payload that is missing, too long, or not JSON in UTF-8. Check has refused one that is nested too deep.
func (j NewJob) checkPayload(limit int) error {
	switch payload := j.Payload; {
	case len(payload) == 0:
		return invalid("payload", "it is missing; it must be JSON")
	case len(payload) > limit:
		return invalid("payload", fmt.Sprintf("%d bytes are more than the queue's payload_limit of %d", len(payload), limit))
	case !utf8.Valid(payload):
		return invalid("payload", "it is not valid UTF-8")
	case !j.written && !jsonscan.Valid(payload):
		return invalid("payload", jsonscan.Fault(payload))
	}
	return nil
}

// CheckResult returns an [ErrInvalid] if a result or a checkpoint is larger than [MaxResultBytes], nested deeper than 500
// levels, or not UTF-8. Field names the text in the error. Stores call it before they write a result or a checkpoint.
func CheckResult(field string, text json.RawMessage) error {
	switch {
	case len(text) > MaxResultBytes:
		return invalid(field, fmt.Sprintf("%d bytes must be at most %d; keep the data elsewhere, and store its address", len(text), MaxResultBytes))
	case !utf8.Valid(text), !jsonscan.Shallow(text) && jsonscan.Fault(text) != "":
		return invalid(field, cmp.Or(jsonscan.Fault(text), "it is not valid UTF-8"))
	}
	return nil
}
