package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
)

func TestSimulationsAreBounded(t *testing.T) {
	t.Parallel()
	s := serveStore(t, memory.New(memory.Options{}), httpapi.Options{})
	of := func(jobs int) string {
		return fmt.Sprintf("name: x\nqueues: {mail: {}}\narrivals: [{queue: mail, jobs: %d}]\nworkers: [{slots: 10, duration: 1ms}]\n", jobs)
	}
	for scenario, want := range map[string]struct {
		status int
		text   string
	}{
		of(100):     {http.StatusOK, `"holds":true`},
		of(300_000): {http.StatusUnprocessableEntity, "has 300000 jobs, more than 100000"},
		"name: x\nqueues: {mail: {}}\narrivals: [{queue: mail, rate: 10/s, from: 0s, to: 10h}]\nworkers: [{slots: 10, duration: 1ms}]\n": {http.StatusUnprocessableEntity, "has 360000 jobs"},
		"nonsense": {http.StatusUnprocessableEntity, "scenario"},
	} {
		body, err := json.Marshal(map[string]string{"scenario": scenario})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.ask(http.MethodPost, "/simulations", string(body)); got.status != want.status || !strings.Contains(got.text, want.text) {
			t.Errorf("%.40q: %d %.300s, want %d and %s", scenario, got.status, got.text, want.status, want.text)
		}
	}
}

func TestScenariosSayWhetherAServerSimulatesThem(t *testing.T) {
	t.Parallel()
	s := serveStore(t, memory.New(memory.Options{}), httpapi.Options{})
	var read struct {
		Scenarios []struct{ Name, Text, Refused string }
	}
	if err := json.Unmarshal([]byte(s.ask(http.MethodGet, "/simulations", "").text), &read); err != nil || len(read.Scenarios) == 0 {
		t.Fatalf("got %d scenarios, %v", len(read.Scenarios), err)
	}
	for _, one := range read.Scenarios {
		if (one.Name == "three-tiers") != strings.Contains(one.Refused, "has 285600 jobs, more than 100000") {
			t.Errorf("%s: refused %q, want that three-tiers alone is too large", one.Name, one.Refused)
		}
	}
}
