package sluice_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

// step is a job of a batch. It runs after the jobs at the indexes in after.
type step struct {
	after []int
	order string
	key   string
}

func TestBatchesMayBeInAnyOrderButNotInACircle(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		steps   []step
		circle  []int // the jobs that are refused because they wait for each other
		missing []int // the jobs that are refused because a job before them was refused
	}{
		"the last first":             {steps: []step{{after: []int{1}}, {after: []int{2}}, {}}},
		"a diamond":                  {steps: []step{{after: []int{1, 2}}, {after: []int{3}}, {after: []int{3}}, {}}},
		"two of each other":          {steps: []step{{after: []int{1}}, {after: []int{0}}, {}}, circle: []int{0, 1}},
		"a long way round":           {steps: []step{{after: []int{1}}, {after: []int{2}}, {after: []int{3}}, {after: []int{1}}}, circle: []int{1, 2, 3}, missing: []int{0}},
		"by order and after":         {steps: []step{{order: "o", after: []int{1}}, {order: "o"}, {}}, circle: []int{0, 1}},
		"by order, with another":     {steps: []step{{order: "o", after: []int{2}}, {order: "o"}, {after: []int{1}}, {order: "p"}}, circle: []int{0, 1, 2}},
		"with the order":             {steps: []step{{order: "o"}, {order: "o", after: []int{0}}}},
		"after its own twin":         {steps: []step{{key: "k", after: []int{1}}, {key: "k"}}, circle: []int{0, 1}},
		"the second of an order key": {steps: []step{{order: "o"}, {after: []int{3}}, {order: "o", after: []int{1}}, {}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
			jobs := make([]sluice.NewJob, len(test.steps))
			for i := range jobs {
				jobs[i] = newJob(`1`)
				jobs[i].ID = sluice.NewID()
			}
			for i, s := range test.steps {
				jobs[i].OrderKey, jobs[i].Key = s.order, s.key
				for _, n := range s.after {
					jobs[i].After = append(jobs[i].After, jobs[n].ID, jobs[n].ID)
				}
			}
			receipts, err := client.EnqueueMany(t.Context(), jobs)
			var refused *sluice.BatchError
			if err != nil && !errors.As(err, &refused) {
				t.Fatal(err)
			}
			want := make(map[int]error)
			for _, n := range test.circle {
				want[n] = sluice.ErrInvalid
			}
			for _, n := range test.missing {
				want[n] = sluice.ErrNotFound
			}
			for i := range jobs {
				var got error
				if refused != nil {
					got = refused.Failed[i]
				}
				if (got == nil) != (want[i] == nil) || got != nil && !errors.Is(got, want[i]) {
					t.Errorf("job %d: %v, want %v", i, got, want[i])
				}
				if got == nil && receipts[i].ID != jobs[i].ID && test.steps[i].key == "" {
					t.Errorf("job %d has the receipt %+v", i, receipts[i])
				}
				if errors.Is(got, sluice.ErrInvalid) && !strings.Contains(got.Error(), jobs[i].ID.String()) {
					t.Errorf("the error of job %d does not name it: %v", i, got)
				}
			}
		})
	}
}

func TestPlacesAmongOthersAreChecked(t *testing.T) {
	t.Parallel()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	own := sluice.NewID()
	for field, options := range map[string]sluice.EnqueueOptions{
		"order_key":      {OrderKey: strings.Repeat("x", 256)},
		"after":          {ID: own, After: []sluice.ID{own}},
		"after_failure":  {AfterFailure: sluice.FailureRuns},
		"after_failures": {After: []sluice.ID{own}, AfterFailures: map[sluice.ID]sluice.AfterFailure{sluice.NewID(): sluice.FailureRuns}},
	} {
		job := newJob(`1`)
		job.EnqueueOptions = options
		var invalid *sluice.InvalidError
		if _, err := client.Enqueue(t.Context(), job); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%v, want it to name %s", err, field)
		}
	}
	for _, options := range []sluice.EnqueueOptions{
		{After: make([]sluice.ID, sluice.MaxAfter+1)},
		{After: make([]sluice.ID, 1)},
		{After: []sluice.ID{sluice.NewID()}, AfterFailure: "shrug"},
	} {
		job := newJob(`1`)
		job.EnqueueOptions = options
		if _, err := client.Enqueue(t.Context(), job); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%+v gives %v", options, err)
		}
	}
	job := newJob(`1`)
	job.After = []sluice.ID{sluice.NewID()}
	if _, err := client.Enqueue(t.Context(), job); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("after an unknown job: %v", err)
	}
}

func newJob(payload string) sluice.NewJob {
	return sluice.NewJob{Queue: "q", Payload: []byte(payload)}
}
