package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

func TestPayloadThatDoesNotFitIsBuriedAlone(t *testing.T) {
	inShop(t, func(s *shop) {
		s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error { return nil })
		bad, err := s.client.Enqueue(t.Context(), sluice.NewJob{Queue: payments.Name(), Payload: []byte(`{"cents":"many"}`)})
		if err != nil {
			t.Fatal(err)
		}
		good := s.add(sluice.EnqueueOptions{})
		job := s.becomes(bad.ID, sluice.StateDead)
		if !strings.Contains(job.Error, "does not fit") {
			t.Errorf("error %q", job.Error)
		}
		s.becomes(good, sluice.StateCompleted)
		_ = s.end()
	})
}

func TestPayloadIsCheckedAgainstTheSchemaBeforeItRuns(t *testing.T) {
	inShop(t, func(s *shop) {
		id := s.add(sluice.EnqueueOptions{})
		s.settings(func(set *sluice.Settings) { set.PayloadSchema = `{"maximum":1}` })
		s.worker = worker.New(s.store, worker.Options{PayloadChecker: refusing{}, Logger: quiet})
		worker.Handle(s.worker, payments, func(context.Context, *worker.Job[payment]) error {
			t.Error("the handler ran, want the payload refused before")
			return nil
		}, worker.QueueOptions{})
		s.begin()
		if job := s.becomes(id, sluice.StateDead); !strings.Contains(job.Error, "does not match the payload_schema") {
			t.Errorf("error %q", job.Error)
		}
		_ = s.end()
	})
}

// explosive is a payload whose decoder panics at some of its values. It is a PayloadChecker that does the same.
type explosive struct{ Cents int64 }

func (e *explosive) UnmarshalJSON(payload []byte) error { return e.Check("", payload) }
func (*explosive) Compile(string) error                 { return nil }
func (*explosive) Check(_ string, payload []byte) error {
	if strings.Contains(string(payload), "1") {
		panic("one cent too many")
	}
	return nil
}

func TestPanicAtOnePayloadOfACallFailsThatJobAlone(t *testing.T) {
	for name, checker := range map[string]sluice.PayloadChecker{"in its decoder": nil, "in its checker": &explosive{}} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				ids := s.addMany(2)
				s.settings(func(set *sluice.Settings) {
					set.MaxAttempts = 1
					if checker != nil {
						set.PayloadSchema = "{}"
					}
				})
				s.worker = worker.New(s.store, worker.Options{PayloadChecker: checker, Logger: quiet})
				worker.HandleMany(s.worker, sluice.QueueOf[explosive](payments.Name()), func(context.Context, []*worker.Job[explosive]) error {
					return nil
				}, worker.ManyOptions{Size: 2})
				s.begin()
				s.becomes(ids[0], sluice.StateCompleted)
				if job := s.becomes(ids[1], sluice.StateDead); !strings.Contains(job.Error, "panic: one cent too many") {
					t.Errorf("error %q", job.Error)
				}
				_ = s.end()
			})
		})
	}
}

type refusing struct{}

func (refusing) Compile(string) error       { return nil }
func (refusing) Check(string, []byte) error { return errors.New("cents: too many") }
