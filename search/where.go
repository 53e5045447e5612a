package search

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Term is one condition of a filter, such as state:ready,claimed. A job matches a term if it matches any of its values.
type Term struct {
	// Field names the compared property; see [Fields].
	Field string `json:"field"`
	// Not says that a job must match none of the values.
	Not bool `json:"not,omitempty"`
	// Values are what [Parse] reads, with instants instead of relative times.
	Values []string `json:"values"`
	// At is when the filter was read: a job is ready or scheduled by this instant.
	At time.Time `json:"at,omitzero"`
}

// Field is a property of jobs that a filter can compare.
type Field struct {
	// Name is the name in a filter, such as queue, and Meaning one sentence for people.
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
	// Example is a term.
	Example string `json:"example"`
	// Indexed says that a term of one value is looked up; of id, one of many. Otherwise jobs are compared one by one.
	Indexed bool `json:"indexed"`

	kind  kind
	text  func(sluice.Job, string) (string, bool)
	count func(sluice.Job) int
	at    func(sluice.Job) time.Time
}

// kind is how a field compares values.
type kind int

const (
	ofText    kind = iota // equal; with ~ contains; with a * at the end, begins with
	ofCount               // a number or a span
	ofInstant             // an instant, a time from now, or a span
	ofAge                 // a duration until now, or a span
	ofState               // a state, or the word that people see
	ofRun                 // the word open
	ofID                  // as ofText; one that must be equal is a whole ID
)

// labelPrefix begins the fields of labels.
const labelPrefix = "label."

// fields lists what a filter can compare.
var fields = []Field{
	{Name: "state", Meaning: "The state of the job: a state, or ready, scheduled, retrying or blocked.", Example: "state:ready,claimed", Indexed: true, kind: ofState},
	{Name: "queue", Meaning: "The queue of the job.", Example: "queue:mail.*", Indexed: true, text: always(func(j sluice.Job) string { return j.Queue })},
	{Name: "tenant", Meaning: "The tenant of the job.", Example: "tenant:acme", Indexed: true, text: always(func(j sluice.Job) string { return j.Tenant })},
	{Name: "key", Meaning: "The key of the job.", Example: "key:order-42", Indexed: true, text: always(func(j sluice.Job) string { return j.Key })},
	{Name: labelPrefix + "NAME", Meaning: "The label NAME of the job.", Example: "label.region:eu", Indexed: true, text: func(j sluice.Job, name string) (string, bool) {
		value, has := j.Labels[strings.TrimPrefix(name, labelPrefix)]
		return value, has
	}},
	{Name: "batch", Meaning: "The batch that the job is directly in.", Example: "batch:01a1fb72-1dea-7abc-8fc6-99e4817522bb", Indexed: true, kind: ofID, text: func(j sluice.Job, _ string) (string, bool) {
		return j.Batch.String(), !j.Batch.IsZero()
	}},
	{Name: "id", Meaning: "The ID of the job.", Example: "id:01a1fb72-1dea-7abc-8fc6-99e4817522bb", Indexed: true, kind: ofID, text: always(func(j sluice.Job) string { return j.ID.String() })},
	{Name: "order_key", Meaning: "The order key of the job.", Example: "order_key:account-7", text: always(func(j sluice.Job) string { return j.OrderKey })},
	{Name: "limit_key", Meaning: "The limit key of the job.", Example: "limit_key:example.com", text: always(func(j sluice.Job) string { return j.LimitKey })},
	{Name: "holder", Meaning: "The process that has or had the job.", Example: "holder:host-3*", text: always(func(j sluice.Job) string { return j.Holder })},
	{Name: "engine", Meaning: "The engine of the job's run.", Example: "engine:temporal*", text: always(func(j sluice.Job) string { return j.Engine })},
	{Name: "run", Meaning: "Whether the job's run is under way, as far as the engine has told.", Example: "run:open", Indexed: true, kind: ofRun},
	{Name: "ref", Meaning: "The name of the job's run.", Example: "ref:order-42", text: always(func(j sluice.Job) string { return j.Ref })},
	{Name: "error", Meaning: "The last error of the job.", Example: `error:~"time out"`, text: always(func(j sluice.Job) string { return j.Error })},
	{Name: "fp", Meaning: "The fingerprint of the job's last error.", Example: "fp:9ac1b2d3", text: always(fingerprint)},
	{Name: "attempts", Meaning: "How many attempts failed.", Example: "attempts:>=3", kind: ofCount, count: func(j sluice.Job) int { return j.Attempts }},
	{Name: "cost", Meaning: "The units that the job takes of limits by cost.", Example: "cost:>=1000", kind: ofCount, count: func(j sluice.Job) int { return max(j.Cost, 1) }},
	{Name: "recoveries", Meaning: "How many holders were lost.", Example: "recoveries:>0", kind: ofCount, count: func(j sluice.Job) int { return j.Recoveries }},
	{Name: "priority", Meaning: "The priority of the job, 1 to 10.", Example: "priority:1..3", kind: ofCount, count: func(j sluice.Job) int { return j.Priority }},
	{Name: "generation", Meaning: "The number of the job's life.", Example: "generation:>1", kind: ofCount, count: func(j sluice.Job) int { return j.Generation }},
	{Name: "due", Meaning: "When the job is due: an instant, a time of day in UTC, or a time from now.", Example: "due:<10m", kind: ofInstant, at: func(j sluice.Job) time.Time { return j.DueAt }},
	{Name: "created", Meaning: "When the job was enqueued.", Example: "created:2026-11-25T16:00:00Z..2026-11-25T17:00:00Z", kind: ofInstant, at: func(j sluice.Job) time.Time { return j.CreatedAt }},
	{Name: "finished", Meaning: "When the job ended.", Example: "finished:>-1h", kind: ofInstant, at: func(j sluice.Job) time.Time { return j.FinishedAt }},
	{Name: "age", Meaning: "How long ago the job was enqueued.", Example: "age:>5m", kind: ofAge, at: func(j sluice.Job) time.Time { return j.CreatedAt }},
}

// insteadOf says why a filter cannot compare what people look for under a name, and what to use.
var insteadOf = map[string]string{
	"reason":  "no store keeps why a job waits, since that changes without the job; list state:ready,scheduled,retrying,blocked, and ask `sluice why ID`",
	"payload": "no index holds payloads; give jobs a label, and write label.NAME:VALUE",
	"worker":  "write holder:NAME, such as holder:host-3*",
	"sort":    "no index has another order; lists begin with the newest job, or ask for the oldest first",
}

// always makes a text of a field that each job has.
func always(text func(sluice.Job) string) func(sluice.Job, string) (string, bool) {
	return func(j sluice.Job, _ string) (string, bool) { return text(j), true }
}

// Fields lists the properties that a filter can compare.
func Fields() []Field { return slices.Clone(fields) }

// fieldNamed finds a field by its name in a filter.
func fieldNamed(name string) (Field, error) {
	for _, f := range fields {
		if f.Name == name || f.Name == labelPrefix+"NAME" && len(name) > len(labelPrefix) && strings.HasPrefix(name, labelPrefix) {
			return f, nil
		}
	}
	first, _, _ := strings.Cut(name, ".")
	if instead := insteadOf[first]; instead != "" {
		return Field{}, fmt.Errorf("%.40q is no field: %s", name, instead)
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return Field{}, fmt.Errorf("%.40q is no field; the fields are %s", name, strings.Join(names, ", "))
}

// maxTerms and maxFilterBytes bound a filter.
const (
	maxTerms       = 100
	maxFilterBytes = 8 << 10
)

// Parse reads a filter, such as `state:ready,claimed queue:mail.* -tenant:acme due:<10m error:~"time out"`. Blanks mean
// and, commas mean or, and a leading - means not. ~ compares parts, .. is a span, and quotes keep blanks and commas.
// Relative times count from now. An empty filter chooses all jobs.
//
// A filter that breaks a rule is a [sluice.ErrInvalid] of the field where.
func Parse(filter string, now time.Time) (Query, error) {
	var q Query
	if len(filter) > maxFilterBytes {
		return q, feature.Invalid("where", fmt.Sprintf("%d bytes must be at most %d", len(filter), maxFilterBytes))
	}
	if sluice.StoredText(filter) != filter {
		return q, feature.Invalid("where", "must be valid UTF-8 without NUL")
	}
	for rest := strings.TrimLeft(filter, " \t\r\n"); rest != ""; rest = strings.TrimLeft(rest, " \t\r\n") {
		var term Term
		var err error
		if term, rest, err = readTerm(rest, now.UTC()); err != nil {
			return Query{}, feature.Invalid("where", err.Error())
		}
		if q.Terms = append(q.Terms, term); len(q.Terms) > maxTerms {
			return Query{}, feature.Invalid("where", fmt.Sprintf("more than %d terms", maxTerms))
		}
	}
	q.lookUp()
	return q, nil
}

// And narrows the query by a filter, as [Parse] reads it.
func (q Query) And(filter string, now time.Time) (Query, error) {
	more, err := Parse(filter, now)
	if err != nil {
		return q, err
	}
	q.Terms = append(slices.Clone(q.Terms), more.Terms...)
	q.Queue, q.Tenant, q.Key = cmp.Or(q.Queue, more.Queue), cmp.Or(q.Tenant, more.Tenant), cmp.Or(q.Key, more.Key)
	if q.Batch.IsZero() {
		q.Batch = more.Batch
	}
	if len(q.States) == 0 {
		q.States = more.States
	}
	if len(q.Labels) == 0 {
		q.Labels = more.Labels
	}
	return q, nil
}

// readTerm reads the first term of a filter.
func readTerm(text string, now time.Time) (term Term, rest string, err error) {
	text, term.Not = strings.CutPrefix(text, "-")
	name, values, found := strings.Cut(text, ":")
	if !found || strings.ContainsAny(name, " \t\r\n\",") {
		return term, "", fmt.Errorf("%.60q must be a term such as queue:mail", firstWord(text))
	}
	field, err := fieldNamed(name)
	if err != nil {
		return term, "", err
	}
	if term.Field = name; field.kind == ofState {
		term.At = now
	}
	for {
		var value value
		if value, values, err = readValue(values); err != nil {
			return term, "", fmt.Errorf("%s: %w", name, err)
		}
		stored, err := field.stored(value, now)
		if err != nil {
			return term, "", fmt.Errorf("%s: %w", name, err)
		}
		term.Values = append(term.Values, stored)
		if values, found = strings.CutPrefix(values, ","); !found {
			return term, values, nil
		}
	}
}

// firstWord returns the text up to the first blank.
func firstWord(text string) string { return strings.Fields(text + " .")[0] }

// value is one value of a term.
type value struct {
	text   string
	part   bool // after a ~
	quoted bool
}

// readValue reads the first value of a list.
func readValue(text string) (v value, rest string, err error) {
	text, v.part = strings.CutPrefix(text, "~")
	if inner, quoted := strings.CutPrefix(text, `"`); quoted {
		var found bool
		if v.text, rest, found = strings.Cut(inner, `"`); !found {
			return v, "", fmt.Errorf("%.60q lacks its closing quote", text)
		}
		if v.quoted = true; rest != "" && !strings.ContainsAny(rest[:1], " \t\r\n,") {
			return v, "", fmt.Errorf("%.60q must be followed by a blank or a comma", v.text)
		}
		return v, rest, nil
	}
	end := strings.IndexAny(text, " \t\r\n,")
	if end < 0 {
		end = len(text)
	}
	if v.text, rest = text[:end], text[end:]; v.text == "" {
		return v, "", errors.New(`a value is missing; write "" for an empty one`)
	}
	return v, rest, nil
}

// lookUp sets the fields that stores look up from the terms of one value, so that a search reads few jobs.
func (q *Query) lookUp() {
	for _, term := range q.Terms {
		if term.Not {
			continue
		}
		if term.Field == "state" {
			q.lookUpStates(term.Values)
			continue
		}
		if term.Field == "run" {
			q.lookUpStates([]string{string(sluice.StateDispatched)})
			continue
		}
		if len(term.Values) != 1 || term.Values[0] == equalTo {
			continue
		}
		text, exact := strings.CutPrefix(term.Values[0], equalTo)
		switch {
		case term.Field == "queue" && strings.HasSuffix(term.Values[0], ".*") && strings.HasPrefix(term.Values[0], beginsWith):
			if group := strings.TrimPrefix(term.Values[0], beginsWith); q.Queue == "" && sluice.IsGroup(group) {
				q.Queue = group
			}
		case !exact:
		case term.Field == "queue" && (q.Queue == "" || sluice.IsGroup(q.Queue)):
			q.Queue = text
		case term.Field == "tenant" && q.Tenant == "":
			q.Tenant = text
		case term.Field == "key" && q.Key == "":
			q.Key = text
		case term.Field == "batch" && q.Batch.IsZero():
			if id, err := sluice.ParseID(text); err == nil {
				q.Batch = id
			}
		case strings.HasPrefix(term.Field, labelPrefix):
			if q.Labels == nil {
				q.Labels = make(map[string]string)
			}
			q.Labels[strings.TrimPrefix(term.Field, labelPrefix)] = text
		}
	}
}

// lookUpStates narrows the states to those of words that people see.
func (q *Query) lookUpStates(words []string) {
	var states []sluice.State
	for _, text := range words {
		state := sluice.State(text)
		if !slices.Contains(sluice.States(), state) {
			state = sluice.StateQueued
		}
		if !slices.Contains(states, state) && (len(q.States) == 0 || slices.Contains(q.States, state)) {
			states = append(states, state)
		}
	}
	if len(states) > 0 {
		q.States = states
	}
}
