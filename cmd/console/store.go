package console

import (
	"context"

	"github.com/sluice-queue/sluice/health"
)

func storePages() []page {
	return []page{{name: "store", path: "/store", title: "Store", letter: "h", load: loadStore}}
}

// storeView is the view of /store: what `sluice doctor` says.
type storeView struct {
	Kind     string    `json:"kind"`
	Ill      bool      `json:"ill"`
	Findings []finding `json:"findings"`
}

// finding is the result of a check.
type finding struct{ health.Finding }

// State is the finding in a word.
func (f finding) State() string {
	switch {
	case !f.Well:
		return "failed"
	case f.Severity != "":
		return "note"
	}
	return "well"
}

// Name names the kind of store.
func (s storeView) Name() string {
	if name := map[string]string{"sqlite": "SQLite", "postgres": "PostgreSQL", "memory": "memory"}[s.Kind]; name != "" {
		return name
	}
	return s.Kind
}

func loadStore(ctx context.Context, v *visit) (any, error) {
	var view storeView
	v.cli("sluice doctor")
	err := v.get(ctx, "/health", nil, &view)
	return view, err
}
