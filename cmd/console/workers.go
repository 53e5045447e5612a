package console

import (
	"context"
	"net/url"
	"slices"

	"github.com/sluice-queue/sluice/presence"
)

func workerPages() []page {
	return []page{{name: "workers", path: "/workers", title: "Workers", letter: "r", load: loadWorkers}}
}

// workersView is the view of /workers.
type workersView struct {
	Holders      []presence.Holder      `json:"holders"`
	Instructions []presence.Instruction `json:"instructions"`
	// Versions are those of the processes' programs, and Protocols counts the protocols, of which there should be one.
	Versions  []string `json:"-"`
	Protocols int      `json:"-"`
}

func loadWorkers(ctx context.Context, v *visit) (any, error) {
	var view workersView
	v.cli("sluice holders")
	if err := v.get(ctx, "/holders", nil, &view); err != nil {
		return nil, err
	}
	var protocols []int
	for _, h := range view.Holders {
		if h.Version != "" && !slices.Contains(view.Versions, h.Version) {
			view.Versions = append(view.Versions, h.Version)
		}
		if !slices.Contains(protocols, h.Protocol) {
			protocols = append(protocols, h.Protocol)
		}
	}
	view.Protocols = len(protocols)
	return view, nil
}

func workerActs() []act {
	instruct := func(name, label, wanted, sentence, verb, undo string, danger bool) act {
		return act{
			name: name, label: label, route: "instruct-holders", sentence: sentence, undo: undo, danger: danger, needsReason: true,
			command: "sluice holders " + verb + " {holder} --version={version} --for={for} --reason={reason}",
			fields:  []field{{name: "for", label: "For", hint: "such as 1h; empty: until somebody tells it otherwise"}},
			body: func(values url.Values) (map[string]any, error) {
				target := map[string]any{}
				for _, name := range []string{"holder", "version"} {
					if text := values.Get(name); text != "" {
						target[name] = text
					}
				}
				body := map[string]any{"wanted": wanted, "target": target}
				if text := values.Get("for"); text != "" {
					body["for"] = text
				}
				return body, nil
			},
		}
	}
	return []act{
		instruct("quiesce-workers", "Quiesce", "quiesce", "Tell {holder}{version} to claim nothing more. Jobs that run go on.", "quiesce", "resume-workers", false),
		instruct("resume-workers", "Resume", "work", "Tell {holder}{version} to claim jobs again.", "resume", "quiesce-workers", false),
		instruct("stop-workers", "Stop", "stop", "Tell {holder}{version} to end when its jobs have ended.", "stop", "", true),
	}
}
