package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
)

func settingPages() []page {
	return []page{{name: "settings", path: "/settings", title: "Settings", letter: "c", load: loadSettings}}
}

// settingsView is the view of /settings: who may reach the server, and which queues the store takes.
type settingsView struct {
	Tokens    []access.Token
	Admission *admission
	// Withheld says that only admins see tokens.
	Withheld bool
	Access   *Access
	// Shown is what the server was told to show.
	Shown []relation
	// SessionEnd is when the session of the viewer ends. Zero: the viewer has none.
	SessionEnd time.Time
}

// admission says which new queues the store takes.
type admission struct {
	Queues    int    `json:"queues"`
	MaxQueues int    `json:"max_queues"`
	Declared  bool   `json:"declared"`
	ChangedBy string `json:"changed_by"`
	Reason    string `json:"reason"`
}

// shown are the options about what pages show, as they are given to sluice serve. An empty text: none is given.
func (v *visit) shown() []relation {
	o := v.console.options
	all := []relation{{Name: "Environment", Text: o.Environment}, {Name: "Store", Text: o.Store}, {Name: "Page of a run", Text: o.RunPage}, {Name: "Page of a trace", Text: o.TracePage}}
	if v.viewer.bounded() { // they are not offered the views
		return all
	}
	for _, view := range o.Views {
		all = append(all, relation{"View " + view.Name, view.Filter, v.console.url("/jobs", "q", view.Filter)})
	}
	return all
}

func loadSettings(ctx context.Context, v *visit) (any, error) {
	view := settingsView{Access: v.console.options.Access, Shown: v.shown()}
	if view.Access != nil && view.Access.SessionEnd != nil {
		view.SessionEnd = view.Access.SessionEnd(&http.Request{Header: v.caller.header, Host: v.caller.host, TLS: v.caller.tls})
	}
	v.note("/whoami", nil)
	if !v.viewer.bounded() { // others may not know how many queues there are
		v.cli("sluice queues policy")
		view.Admission = &admission{}
		if err := v.get(ctx, "/admission", nil, view.Admission); err != nil {
			return nil, err
		}
	}
	if view.Withheld = !v.may("list-tokens"); view.Withheld {
		return view, nil
	}
	v.cli("sluice tokens")
	var read struct {
		Tokens []access.Token `json:"tokens"`
	}
	err := v.get(ctx, "/tokens", url.Values{"limit": {"1000"}}, &read)
	view.Tokens = read.Tokens
	return view, err
}

func settingActs() []act {
	return []act{
		{
			name: "create-token", label: "Create a token", route: "create-token",
			command:  "sluice tokens create {name} --role={role} --queue={queues*} --tenant={tenants*} --expires-in={for} --reason={reason}",
			sentence: "Create a token for a program or a person. Its secret is shown once.",
			fields: []field{
				{name: "name", label: "Name", hint: "the audit shows it", required: true},
				{name: "role", label: "Role", kind: "select", options: []string{"viewer", "reader", "producer", "worker", "operator", "admin"}, hint: "a viewer sees no payloads; an operator acts on jobs and settings"},
				{name: "queues", label: "Only these queues", hint: "names, with commas between them, such as mail.*; empty: all"},
				{name: "tenants", label: "Only these tenants", hint: "as the queues; empty: all"},
				{name: "for", label: "Ends after", hint: "such as 90d; empty: never"},
			},
			body: tokenBody, done: secret,
		},
		{
			name: "rotate-token", label: "Rotate", route: "rotate-token", command: "sluice tokens rotate {name} --overlap={overlap} --reason={reason}",
			sentence: "Give the token {name} a new secret, which is shown once.",
			fields:   []field{{name: "overlap", label: "The old secret still works for", hint: "such as 1h; empty: not at all"}}, done: secret,
		},
		{
			name: "revoke-token", label: "Revoke", route: "revoke-token", command: "sluice tokens revoke {name} --reason={reason}",
			sentence: "Revoke the token {name}: requests with it are refused from now on.", danger: true,
		},
		{
			name: "test-redaction", label: "Test the redaction", route: "scrub-text", noReason: true,
			sentence: "See which secrets the server would find in an error before it stores and logs it. Nothing of the text is kept.",
			fields:   []field{{name: "text", label: "Text", kind: "area", required: true}}, done: redacted,
		},
		{
			name: "change-admission", label: "Change", route: "change-admission", command: "sluice queues policy --max={max_queues} --declared={declared} --reason={reason}",
			sentence: "Change which new queues the store takes.",
			fields:   []field{{name: "max_queues", label: "Most queues", kind: "number", hint: "empty: as it is"}, {name: "declared", label: "Queues must be declared before their first job", kind: "select", options: []string{"", "on", "off"}}},
			body:     admissionBody,
		},
	}
}

// tokenBody makes lists of names, and the end of the token.
func tokenBody(values url.Values) (map[string]any, error) {
	body := map[string]any{"name": strings.TrimSpace(values.Get("name")), "role": values.Get("role")}
	for _, name := range []string{"queues", "tenants"} {
		if names := strings.FieldsFunc(values.Get(name), func(r rune) bool { return r == ',' || r == ' ' }); len(names) > 0 {
			body[name] = names
		}
	}
	if text := strings.TrimSpace(values.Get("for")); text != "" {
		while, err := sluice.ParseDuration(text)
		if err != nil || while <= 0 {
			return nil, invalid("for", errors.New("must be a duration such as 90d"))
		}
		body["expires_at"] = time.Now().Add(while).UTC()
	}
	return body, nil
}

func admissionBody(values url.Values) (map[string]any, error) {
	body := map[string]any{}
	if text := values.Get("declared"); text != "" {
		body["declared"] = text == "on"
	}
	if text := strings.TrimSpace(values.Get("max_queues")); text != "" {
		n, err := field{kind: "number"}.read(text)
		if err != nil {
			return nil, invalid("max_queues", err)
		}
		body["max_queues"] = n
	}
	return body, nil
}

// secret shows a new secret, once.
func secret(a answered) string {
	return "Copy the secret now, it is not shown again: " + asText(a["secret"])
}

// redacted shows what was left of a text.
func redacted(a answered) string {
	if a["changed"] != true {
		return "The server finds no secret in it"
	}
	return "The server keeps: " + asText(a["text"])
}
