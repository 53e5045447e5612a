package httpapi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/remote"
)

// TestARefusedQueueTellsNoCountOfOthers enqueues into a new queue when the store has as many as it may have.
func TestARefusedQueueTellsNoCountOfOthers(t *testing.T) {
	t.Parallel()
	bounds := access.Bounds{Queues: []string{"new"}}
	s := serve(t, httpapi.Options{}, access.Caller{Name: "all", Role: access.RoleAdmin}, access.Caller{Name: "bounded", Role: access.RoleProducer, Bounds: bounds})
	for n := range 3 {
		s.enqueue(fmt.Sprint("q", n), "")
	}
	s.steps([]step{{"PATCH", "/admission", `{"max_queues":3,"reason":"x"}`, 200, nil}}, "Authorization", "Bearer all")
	for name, tells := range map[string]bool{"all": true, "bounded": false} {
		r := s.ask("POST", "/jobs", `{"queue":"new","payload":1}`, "Authorization", "Bearer "+name)
		if told := strings.Contains(r.text, "3 queues") || strings.Contains(r.text, "stored"); r.status != 409 || told != tells || !strings.Contains(r.text, "as many queues as it may have") && !tells {
			t.Errorf("%s got %d %s", name, r.status, r.text)
		}
		store := must(remote.Open(t.Context(), strings.TrimSuffix(s.url, httpapi.Root), remote.Options{Token: name}))
		defer func() { _ = store.Close() }()
		var limit *admission.QueueLimitError
		if _, err := sluice.NewClient(store, sluice.ClientOptions{}).Enqueue(t.Context(), sluice.NewJob{Queue: "new", Payload: []byte("1")}); !errors.As(err, &limit) || limit.Queue != "new" {
			t.Errorf("a program of %s gets %v", name, err)
		}
	}
}
