package console

import (
	"context"
	"net/url"
	"strings"

	"github.com/sluice-queue/sluice/internal/wire"
)

func limitPages() []page {
	return []page{{name: "limits", path: "/limits", title: "Limits", letter: "m", load: loadLimits}}
}

// limitList is the view of /limits.
type limitList struct {
	Limits  []wire.LimitView
	Entries []auditEntry
}

// mostKeyed is of how many limits that are per key the page reads the keys.
const mostKeyed = 20

func loadLimits(ctx context.Context, v *visit) (any, error) {
	v.cli("sluice limits ls")
	var read struct {
		Limits []wire.LimitView `json:"limits"`
	}
	if err := v.get(ctx, "/limits", nil, &read); err != nil {
		return nil, err
	}
	keyed := 0
	for i, l := range read.Limits {
		if !l.PerKey || keyed == mostKeyed {
			continue
		}
		keyed++
		v.cli("sluice limits get " + quoted(l.Name))
		if err := v.get(ctx, "/limits/"+url.PathEscape(l.Name), nil, &read.Limits[i]); err != nil {
			return nil, err
		}
	}
	view := limitList{Limits: read.Limits}
	var err error
	view.Entries, err = v.entries(ctx, cacheFor, "/audit", url.Values{"object": {"limit"}, "limit": {"20"}})
	return view, err
}

// sharedFields are the figures of a limit.
var sharedFields = []field{
	{name: "rate", label: "Rate", hint: "such as 500/5s; empty: as it is"},
	{name: "burst", label: "Burst", hint: "how many more may start at once after a lull; empty: as it is"},
	{name: "concurrency", label: "Concurrency", hint: "the most jobs in flight of all its queues; empty: as it is"},
	{name: "per", label: "Per", hint: "key: the figures count for each limit key apart; empty: as it is"},
}

// sharedBody is a change of a limit.
func sharedBody(values url.Values) (map[string]any, error) {
	set := map[string]any{}
	for _, f := range sharedFields {
		if text := strings.TrimSpace(values.Get(f.name)); text != "" {
			set[f.name] = text
		}
	}
	return map[string]any{"set": set}, nil
}

func limitActs() []act {
	const set = "sluice limits set {limit} rate={rate} burst={burst} concurrency={concurrency} per={per} --reason={reason}"
	while := field{name: "for", label: "For", hint: "such as 10m; empty: until somebody opens it", kind: "duration"}
	needed := field{name: "for", label: "For", hint: "such as 10m", kind: "duration", required: true, value: "10m"}
	return []act{
		{
			name: "new-limit", label: "New limit", route: "set-limit", command: set, sentence: "Make a limit that queues share. A queue takes part by its setting limits.", body: sharedBody,
			fields: append([]field{{name: "limit", label: "Name", hint: "such as bank", required: true}}, sharedFields...),
		},
		{name: "set-limit", label: "Change", route: "set-limit", undo: "undo-limit", command: set, sentence: "Change {limit}, for all its queues.", fields: sharedFields, body: sharedBody},
		{
			name: "close-limit", label: "Close", route: "close-limit", undo: "open-limit", needsReason: true, command: "sluice limits close {limit} --for={for} --reason={reason}",
			sentence: "Close {limit}: no job of its queues is claimed. Those that run go on.", fields: []field{while},
		},
		{name: "open-limit", label: "Open", route: "open-limit", command: "sluice limits open {limit} --reason={reason}", sentence: "Open {limit}: the jobs of its queues are claimed again."},
		{
			name: "close-key", label: "Close a key", route: "close-limit", needsReason: true, asked: []string{"key"}, command: "sluice limits close {limit} --key={key} --for={for} --reason={reason}",
			sentence: "Close one key of {limit}, such as a host that answers no more.", fields: []field{{name: "key", label: "Limit key", required: true}, needed},
		},
		{name: "open-key", label: "Open", route: "open-limit", asked: []string{"key"}, command: "sluice limits open {limit} --key={key} --reason={reason}", sentence: "Open the key {key} of {limit}."},
		{name: "undo-limit", label: "Undo", route: "undo-limit", command: "sluice limits undo {limit} --reason={reason}", sentence: "Give {limit} the figures it had before the last change."},
		{name: "delete-limit", label: "Delete", route: "delete-limit", danger: true, command: "sluice limits delete {limit} --reason={reason}", sentence: "Delete {limit}. No queue may name it."},
	}
}
