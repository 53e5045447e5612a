package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// act is something a person can do on a page: a dialog, a request to the API, and the same as a command.
type act struct {
	// Name is in the URL of the dialog, and label is the button. Route is the name of the API's route.
	name, label, route string
	// Sentence says what will happen. Texts such as {queue} stand for values of the form.
	sentence string
	// About says more, by the values of the form. Nil: nothing.
	about func(values url.Values) string
	// Command does the same in the CLI. A word whose value is missing is left out, such as --for={for}.
	command string
	// Fields are asked for. A value of the route's path that is no field comes from the button.
	fields []field
	// Danger marks acts that cannot be taken back; they are red, and their key needs Shift.
	danger bool
	// Undo is the act that takes this one back, with the same values. Empty: none.
	undo string
	// Needs says that a reason must be given.
	needsReason bool
	// NoReason says that its route takes no reason: it changes nothing, adds a job, or does what upkeep would do by itself.
	noReason bool
	// Preview says on how many jobs the act is done. Nil: it is not about jobs.
	preview func(ctx context.Context, v *visit, values url.Values) (preview, error)
	// Fill sets values when the dialog opens, for example to what the job has now. Nil: those of the button stay.
	fill func(ctx context.Context, v *visit, values url.Values) error
	// Body makes the body of the request. Nil: the fields by their names.
	body func(values url.Values) (map[string]any, error)
	// Asked are the values that go into the query of the address.
	asked []string
	// Done says what came of it. Nil: that it is done.
	done func(a answered) string
	// Then is the page to go to after success, for example of the thing that was made; texts in braces are of the
	// answer. Empty: the page stays.
	then string
}

// field is a value of an act that a person fills in.
type field struct {
	name, label, hint string
	// Kind is text, number, duration, check, select, area, json or hidden.
	kind     string
	options  []string
	required bool
	// Value is filled in at first, unless the button gives one.
	value string
}

// preview says on what an act would be done.
type preview struct {
	Count   int
	More    bool   // there may be others
	States  string // how many are in which state; empty: in one, or not known
	Samples []string
}

// acts lists all acts.
func acts() []act {
	return slices.Concat(queueActs(), tenantActs(), limitActs(), scheduleActs(), jobActs(), allActs(), groupActs(), operationActs(), batchActs(), workerActs(), alertActs(), auditActs(), storeActs(), settingActs())
}

// dialog is the data of the template "dialog".
type dialog struct {
	Act     *act
	Values  url.Values
	Preview *preview
	Problem *httpapi.Problem
	// Confirm is the text to type before the act. Empty: none.
	Confirm    string
	Production bool
	Command    string
	Call       string
	// NoCall says why there is no call. Empty: there is one.
	NoCall string
	// Action is the address that does the act, and Same the one that says what does the same.
	Action, Same string
}

// These are for the template.

func (d *dialog) Label() string    { return d.Act.label }
func (d *dialog) Danger() bool     { return d.Act.danger }
func (d *dialog) Sentence() string { return fillIn(d.Act.sentence, d.Values, plain) }

// About says more than the sentence. Empty: nothing.
func (d *dialog) About() string {
	if d.Act.about == nil {
		return ""
	}
	return d.Act.about(d.Values)
}
func (d *dialog) Fields() []field   { return d.Act.fields }
func (d *dialog) NeedsReason() bool { return d.TakesReason() && (d.Act.needsReason || d.Production) }

// TakesReason reports whether a reason goes into the audit.
func (d *dialog) TakesReason() bool { return !d.Act.noReason }
func (d *dialog) Reason() string    { return d.Values.Get("reason") }

// These are for the template.

func (f field) Name() string      { return f.name }
func (f field) Label() string     { return f.label }
func (f field) Hint() string      { return f.hint }
func (f field) Kind() string      { return f.kind }
func (f field) Options() []string { return f.options }
func (f field) Required() bool    { return f.required }

// Value returns what a field has: of the form, else its default.
func (d *dialog) Value(f field) string {
	if d.Values.Has(f.name) {
		return d.Values.Get(f.name)
	}
	return f.value
}

// FieldProblem returns the rule that a field breaks.
func (d *dialog) FieldProblem(name string) string {
	if d.Problem != nil {
		for _, one := range d.Problem.Fields {
			if one.Field == name || strings.HasSuffix(one.Field, "."+name) {
				return one.Rule
			}
		}
	}
	return ""
}

// Hidden returns the values that are no fields: those of the button.
func (d *dialog) Hidden() url.Values {
	hidden := url.Values{}
	for name, values := range d.Values {
		known := slices.ContainsFunc(d.Act.fields, func(f field) bool { return f.name == name })
		if !known && !slices.Contains(ownNames, name) {
			hidden[name] = values
		}
	}
	return hidden
}

// ownNames are the values that each dialog has by itself.
var ownNames = []string{"reason", "confirm", "act_id"}

var placeholder = regexp.MustCompile(`\{([a-z_]+)([*+]?)\}`)

func plain(text string) string { return text }

// quoted writes a text as one word of a shell.
func quoted(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@=,+%*", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// fillIn replaces {name} by values.
func fillIn(text string, values url.Values, as func(string) string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		return as(strings.Join(values[strings.Trim(found, "{*+}")], ","))
	})
}

// commandOf is the command of an act with values. Words without a value are left out; one with {name*} is repeated for
// each of the values between commas, and one with {name+} for each line.
func (a *act) commandOf(values url.Values) string {
	var words []string
	for word := range strings.FieldsSeq(a.command) {
		found := placeholder.FindStringSubmatch(word)
		if found == nil {
			words = append(words, word)
			continue
		}
		parts := []string{strings.Join(values[found[1]], ",")}
		switch found[2] {
		case "*":
			parts = strings.Split(parts[0], ",")
		case "+":
			parts = strings.Split(parts[0], "\n")
		}
		for _, part := range parts {
			if part = strings.TrimSpace(part); part != "" {
				words = append(words, fillIn(word, with(values, found[1], part), quoted))
			}
		}
	}
	return strings.Join(words, " ")
}

// with is values with another one of a name.
func with(values url.Values, name, value string) url.Values {
	out := maps.Clone(values)
	out[name] = []string{value}
	return out
}

// Commands lists the commands that the console shows for its acts, with a value for each name in braces. The command
// line's tests parse them.
func Commands() []string {
	var commands []string
	for _, a := range acts() {
		if a.command == "" {
			continue
		}
		values := url.Values{}
		for _, found := range placeholder.FindAllStringSubmatch(a.command, -1) {
			values.Set(found[1], sampleOf(&a, found[1]))
		}
		commands = append(commands, a.commandOf(values))
	}
	return commands
}

// sampleOf is a value that a person could give.
func sampleOf(a *act, name string) string {
	for _, f := range a.fields {
		if f.name == name && len(f.options) > 0 {
			return f.options[len(f.options)-1]
		}
		if f.name == name && f.value != "" {
			return f.value
		}
		if f.name == name && f.kind == "number" {
			return "5"
		}
		if f.name == name && f.kind == "check" {
			return "true"
		}
	}
	if known := samples[name]; known != "" {
		return known
	}
	return "mail"
}

// samples are values of names that take more than a word.
var samples = map[string]string{
	"fingerprint": "9ac1f00d", "labels": "region=eu\nplan=free", "for": "1h", "hold": "5m", "id": "01a1fb72-1dea-7abc-8fc6-99e4817522bb", "overlap": "1h", "notable": "90d", "full": "30d",
	"ids": "01a1fb72-1dea-7abc-8fc6-99e4817522bb", "where": "queue:mail", "due_at": "2026-12-01T16:00:00Z", "delay": "10m", "postpone": "10m", "spread": "30m", "rate": "20/s", "payload": "{}", "beside_open_run": "true",
	"every": "10m", "jitter": "2m", "setting": "rate", "value": "100/s", "zone": "UTC", "change": "7", "version": "7", "from": "16:00", "to": "18:00", "days": "mon,tue",
}

// request makes the request of an act.
func (a *act) request(d *description, values url.Values) (method, path string, query url.Values, body map[string]any, err error) {
	r := d.routes[a.route]
	used := []string{"act_id", "confirm"}
	path = placeholder.ReplaceAllStringFunc(r.path, func(found string) string {
		name := strings.Trim(found, "{}")
		used = append(used, name)
		return url.PathEscape(values.Get(name))
	})
	for _, name := range a.asked {
		if text := values.Get(name); text != "" {
			if query == nil {
				query = url.Values{}
			}
			query.Set(name, text)
		}
		used = append(used, name)
	}
	if a.body != nil {
		body, err = a.body(values)
	} else {
		body, err = a.plainBody(values, used)
	}
	if err != nil {
		return "", "", nil, nil, err
	}
	if reason := values.Get("reason"); reason != "" && !a.noReason {
		if r.method == http.MethodDelete {
			return r.method, path, url.Values{"reason": {reason}}, nil, nil
		}
		body["reason"] = reason
	}
	if r.method == http.MethodDelete {
		body = nil
	}
	return r.method, path, query, body, nil
}

// plainBody is a body with the values of the fields, by their names. Empty ones are left out.
func (a *act) plainBody(values url.Values, used []string) (map[string]any, error) {
	body := map[string]any{}
	for _, f := range a.fields {
		text := strings.TrimSpace(values.Get(f.name))
		if text == "" || slices.Contains(used, f.name) {
			continue
		}
		value, err := f.read(text)
		if err != nil {
			return nil, invalid(f.name, err)
		}
		body[f.name] = value
	}
	return body, nil
}

// read reads what somebody filled in.
func (f field) read(text string) (any, error) {
	switch f.kind {
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, errors.New("must be a number")
		}
		return n, nil
	case "check":
		return text == "true", nil
	case "json":
		if !json.Valid([]byte(text)) {
			return nil, errors.New("must be JSON")
		}
		return json.RawMessage(text), nil
	}
	return text, nil
}

// invalid refuses the value of a field.
func invalid(field string, err error) error {
	return &httpapi.Problem{Status: http.StatusUnprocessableEntity, Title: "Not done", Why: field + " " + err.Error(), Do: "change it and try again", Fields: []httpapi.FieldProblem{{Field: field, Rule: err.Error()}}}
}

// button is the data of the template "button".
type button struct {
	Name, Label, URL string
	Danger           bool
	// Refused says why the viewer cannot do it. Empty: he can.
	Refused string
	// Include is a selector of the fields that go along, such as of chosen jobs. Empty: the URL has all.
	Include string
}

// Act is the button of an act, with the values that its dialog begins with, as pairs. Those may not.
func (s *screen) Act(name string, pairs ...any) (template.HTML, error) {
	return s.button(name, button{URL: s.visit.console.url("/do/"+name, pairs...)})
}

// Labelled is Act with another text on the button.
func (s *screen) Labelled(label, name string, pairs ...any) (template.HTML, error) {
	return s.button(name, button{Label: label, URL: s.visit.console.url("/do/"+name, pairs...)})
}

// ActOn is the button of an act on what people have chosen: the fields that a selector finds.
func (s *screen) ActOn(name, include string) (template.HTML, error) {
	return s.button(name, button{URL: s.visit.console.url("/ask/" + name), Include: include})
}

func (s *screen) button(name string, b button) (template.HTML, error) {
	a, is := s.visit.console.acts[name]
	if !is {
		return "", fmt.Errorf("there is no act %s", name)
	}
	b.Name, b.Label, b.Danger = name, or(b.Label, a.label), a.danger
	if !s.visit.may(a.route) {
		b.Refused = "the role " + s.visit.viewer.Role + " may not do this"
	}
	var out strings.Builder
	err := s.visit.console.templates["overview"].ExecuteTemplate(&out, "button", b)
	return template.HTML(out.String()), err //nolint:gosec // made by a template
}
