// Package jobline reads jobs in JSON: the lines of a file of jobs, and the bodies of the HTTP API.
package jobline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/jsonscan"
)

// jobField is a field of a line in a file of jobs.
type jobField struct {
	name string
	read func(value json.RawMessage, into *sluice.NewJob) error
}

// jobFields lists all fields. Instants are RFC 3339; durations are written as in settings.
var jobFields = []jobField{
	{"queue", func(v json.RawMessage, j *sluice.NewJob) error { return readText(v, &j.Queue) }},
	{"payload", func(v json.RawMessage, j *sluice.NewJob) error { j.Payload = bytes.Clone(v); return nil }},
	{"id", func(v json.RawMessage, j *sluice.NewJob) error { return readParsed(v, &j.ID, parseLineID) }},
	{"tenant", func(v json.RawMessage, j *sluice.NewJob) error { return readText(v, &j.Tenant) }},
	{"key", readKey},
	{"key_scope", func(v json.RawMessage, j *sluice.NewJob) error { return readText(v, &j.KeyScope) }},
	{"key_window", func(v json.RawMessage, j *sluice.NewJob) error { return readParsed(v, &j.KeyWindow, ParseDuration) }},
	{"on_duplicate", func(v json.RawMessage, j *sluice.NewJob) error { return readText(v, &j.OnDuplicate) }},
	{"due_at", func(v json.RawMessage, j *sluice.NewJob) error { return readParsed(v, &j.DueAt, ParseInstant) }},
	{"delay", func(v json.RawMessage, j *sluice.NewJob) error { return readParsed(v, &j.Delay, ParseDuration) }},
	{"priority", func(v json.RawMessage, j *sluice.NewJob) error { return readWhole(v, &j.Priority) }},
	{"expires_at", func(v json.RawMessage, j *sluice.NewJob) error { return readParsed(v, &j.ExpiresAt, ParseInstant) }},
	{"labels", readLabels},
	{"max_attempts", func(v json.RawMessage, j *sluice.NewJob) error { return readWhole(v, &j.MaxAttempts) }},
	{"timeout", func(v json.RawMessage, j *sluice.NewJob) error { return readParsed(v, &j.Timeout, parseTimeout) }},
	{"order_key", func(v json.RawMessage, j *sluice.NewJob) error { return readText(v, &j.OrderKey) }},
	{"limit_key", func(v json.RawMessage, j *sluice.NewJob) error { return readText(v, &j.LimitKey) }},
	{"cost", func(v json.RawMessage, j *sluice.NewJob) error { return readWhole(v, &j.Cost) }},
	{"after", readAfter},
	{"batch", func(v json.RawMessage, j *sluice.NewJob) error { return readParsed(v, &j.Batch, ParseID) }},
	{"hold", func(v json.RawMessage, j *sluice.NewJob) error { return readText(v, &j.Hold) }},
	{"after_failure", func(v json.RawMessage, j *sluice.NewJob) error { return readText(v, &j.AfterFailure) }},
	{"after_failures", readAfterFailures},
}

// FieldNames lists the names of the fields.
func FieldNames() string {
	names := make([]string, len(jobFields))
	for i, f := range jobFields {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}

// Parse reads a job; queue is the queue of a job that names none. Its error is a [sluice.InvalidError] with the name of the field, or
// `line`. Unknown and repeated names are refused, because the job would not do what was meant.
func Parse(line []byte, queue string) (sluice.NewJob, error) {
	job := sluice.NewJob{Queue: queue}
	if !utf8.Valid(line) {
		return job, wrong("line", errors.New("it is not valid UTF-8"))
	}
	seen := 0 // a bit for each field
	whole, err := eachMember(line, func(name string, value json.RawMessage) error {
		at := slices.IndexFunc(jobFields, func(f jobField) bool { return f.name == name })
		switch {
		case at < 0:
			return wrong(fmt.Sprintf("%.60q", name), errors.New("there is no such field; the fields are "+FieldNames()))
		case seen&(1<<at) != 0:
			return wrong(name, errors.New("it is there twice"))
		}
		seen |= 1 << at
		if string(value) == "null" && name != "payload" {
			return nil // as if absent
		}
		if err := jobFields[at].read(value, &job); err != nil {
			return wrong(name, err)
		}
		return nil
	})
	if !whole && (err == nil || !jsonscan.Valid(line)) {
		return job, wrong("line", fault(line))
	}
	return job, err
}

func wrong(field string, err error) error {
	return &sluice.InvalidError{Field: field, Rule: err.Error()}
}

// fault says why a line is no JSON object.
func fault(line []byte) error {
	var value json.RawMessage
	err := json.NewDecoder(bytes.NewReader(line)).Decode(&value)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends too early to be JSON")
	case err != nil:
		return fmt.Errorf("it is not valid JSON: %w", err)
	case bytes.HasPrefix(value, []byte("{")):
		return errors.New("something follows the object")
	}
	return errors.New("it is not a JSON object")
}

func readText[T ~string](value json.RawMessage, into *T) error {
	if value[0] != '"' {
		return fmt.Errorf("%.60s is not a text", value)
	}
	*into = T(textOf(value))
	return nil
}

// readKey refuses an empty key, mostly from an unset variable of a program: each copy of the job would be stored.
func readKey(value json.RawMessage, into *sluice.NewJob) error {
	if err := readText(value, &into.Key); err != nil {
		return err
	}
	if into.Key == "" {
		return errors.New("it is empty; give it a value, or leave it out")
	}
	return nil
}

func readWhole(value json.RawMessage, into *int) error {
	if json.Unmarshal(value, into) != nil {
		return fmt.Errorf("%.60s is not a whole number", value)
	}
	if *into < 1 {
		return fmt.Errorf("%d is less than 1", *into)
	}
	return nil
}

func readParsed[T any](value json.RawMessage, into *T, parse func(string) (T, error)) error {
	var text string
	if err := readText(value, &text); err != nil {
		return err
	}
	parsed, err := parse(text)
	if err != nil {
		return fmt.Errorf("%.60q: %w", text, err)
	}
	*into = parsed
	return nil
}

func parseLineID(text string) (sluice.ID, error) {
	id, err := ParseID(text)
	if err != nil {
		return id, errors.New("it is not an id (8-4-4-4-12 hexadecimal digits)")
	}
	return id, nil
}

// ParseID reads an id that somebody gives. It refuses the id of zeros, which stands for none: a job with it would get
// a new id each time it is sent, and a filter by it would choose all jobs.
func ParseID(text string) (sluice.ID, error) {
	id, err := sluice.ParseID(text)
	if err == nil && id.IsZero() {
		err = &sluice.InvalidError{Field: "id", Rule: fmt.Sprintf("%q is the id of nothing", text)}
	}
	return id, err
}

func readAfter(value json.RawMessage, into *sluice.NewJob) error {
	var texts []string
	if json.Unmarshal(value, &texts) != nil {
		return fmt.Errorf("%.60s is not a list of job ids", value)
	}
	for _, text := range texts {
		id, err := parseLineID(text)
		if err != nil {
			return fmt.Errorf("%.60q: %w", text, err)
		}
		into.After = append(into.After, id)
	}
	return nil
}

func readAfterFailures(value json.RawMessage, into *sluice.NewJob) error {
	if json.Unmarshal(value, &into.AfterFailures) != nil {
		return fmt.Errorf("%.60s is not an object of failure rules by job id", value)
	}
	return nil
}

func readLabels(value json.RawMessage, into *sluice.NewJob) error {
	if json.Unmarshal(value, &into.Labels) != nil {
		return fmt.Errorf("%.60s is not an object whose values are texts", value)
	}
	return nil
}

// ParseDuration reads a duration in the format of settings.
func ParseDuration(text string) (time.Duration, error) {
	parsed, err := sluice.ParseDuration(text)
	if err != nil {
		return 0, errors.New("it is not a duration such as 500ms, 30s, 5m, 2h or 7d, or too long for one")
	}
	return parsed, nil
}

// parseTimeout reads the timeout of a job. As a setting, 0s is no limit, and in an edit it is that of the handler or the queue: a new job
// that has none leaves it out.
func parseTimeout(text string) (time.Duration, error) {
	parsed, err := ParseDuration(text)
	if err == nil && parsed == 0 {
		err = errors.New("it must be from 1ms to 30d; leave it out for that of the handler or the queue")
	}
	return parsed, err
}

// ParseInstant reads an instant with its zone.
func ParseInstant(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, errors.New("it is not an instant such as 2026-12-01T16:00:00Z or 2026-12-01T16:00:00-07:00")
	}
	return at, nil
}
