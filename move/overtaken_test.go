package move

import (
	"errors"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

// TestAMoveThatStoodStillUndoesNoOther lets one process of a move stand still at each step while another process does the whole
// move. The first one then goes on. It must not open the source again: both stores would run the jobs.
func TestAMoveThatStoodStillUndoesNoOther(t *testing.T) {
	t.Parallel()
	for step, stands := range map[string]struct{ before, after func(m *mover) error }{
		"before it begins": {
			func(*mover) error { return nil },
			func(m *mover) error { return errors.Join(m.target.begin(t.Context(), m.state), m.freeze(t.Context())) },
		},
		"before it closes the source": {
			func(m *mover) error { return m.target.begin(t.Context(), m.state) },
			func(m *mover) error { return m.freeze(t.Context()) },
		},
		"before it freezes the source": {
			func(m *mover) error {
				return errors.Join(m.target.begin(t.Context(), m.state), m.source.shut(t.Context(), mark{ID: m.state.ID, To: m.target.name()}))
			},
			func(m *mover) error { return m.freeze(t.Context()) },
		},
		"before it copies": {
			func(m *mover) error { return errors.Join(m.target.begin(t.Context(), m.state), m.freeze(t.Context())) },
			func(m *mover) error { return m.copy(t.Context()) },
		},
	} {
		for _, way := range [][2]string{{newFile(t), pgtest.NewDatabase(t)}, {pgtest.NewDatabase(t), newFile(t)}} {
			store := open(t, way[0])
			client := sluice.NewClient(store, sluice.ClientOptions{})
			job := sluice.NewJob{Queue: "q", Payload: []byte(`{}`)}
			if _, err := client.Enqueue(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			slow := &mover{options: Options{Progress: func(Progress) {}}, tables: tables()}
			if err := slow.open(t.Context(), way[0], way[1]); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(slow.close)
			slow.state = state{ID: sluice.NewID().String(), From: slow.source.name()}
			if err := stands.before(slow); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
			mustMove(t, way[0], way[1])
			if err := stands.after(slow); err == nil {
				t.Errorf("%s, from %s: it goes on, want an error", step, way[0])
			}
			if _, err := client.Enqueue(t.Context(), job); !errors.Is(err, sluice.ErrMoved) {
				t.Errorf("%s, from %s: the source takes jobs: %v", step, way[0], err)
			}
			if _, err := sluice.NewClient(open(t, way[1]), sluice.ClientOptions{}).Enqueue(t.Context(), job); err != nil {
				t.Errorf("%s: the target %s takes no jobs: %v", step, way[1], err)
			}
			if report := mustMove(t, way[0], way[1]); !report.Already {
				t.Errorf("%s: once more: %+v", step, report)
			}
		}
	}
}
