package console

import (
	"context"
	"net/url"
	"slices"
	"time"
)

func workerPages() []page {
	return []page{{name: "workers", path: "/workers", title: "Workers", letter: "r", load: loadWorkers}}
}

// workersView is the view of /workers.
type workersView struct {
	Holders      []holder      `json:"holders"`
	Instructions []instruction `json:"instructions"`
	// Versions are those of the processes' programs, and Protocols counts the protocols, of which there should be one.
	Versions  []string `json:"-"`
	Protocols int      `json:"-"`
}

// holder is a process that works for the store.
type holder struct {
	ID         string      `json:"id"`
	Role       string      `json:"role"`
	Queues     []string    `json:"queues"`
	Slots      int         `json:"slots"`
	Busy       int         `json:"busy"`
	Leads      []string    `json:"leads"`
	Version    string      `json:"version"`
	Protocol   int         `json:"protocol"`
	Mode       string      `json:"mode"`
	Started    time.Time   `json:"started"`
	Seen       time.Time   `json:"seen"`
	Conditions []condition `json:"conditions"`
}

// condition keeps a process from a part of its work.
type condition struct {
	Kind   string    `json:"kind"`
	Text   string    `json:"text"`
	Repair string    `json:"repair"`
	Since  time.Time `json:"since"`
}

// instruction is what processes were told.
type instruction struct {
	Target struct {
		All     bool   `json:"all"`
		Holder  string `json:"holder"`
		Version string `json:"version"`
	} `json:"target"`
	Wanted    string    `json:"wanted"`
	Until     time.Time `json:"until"`
	ChangedAt time.Time `json:"changed_at"`
	ChangedBy string    `json:"changed_by"`
	Reason    string    `json:"reason"`
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
