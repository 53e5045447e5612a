package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// TestARequestThatIsSentAgainDoesNothing sends the request of a dialog again after another change.
func TestARequestThatIsSentAgainDoesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	change := func(id, rate string) (string, int) {
		return s.do("set-setting", url.Values{"queue": {"mail"}, "setting": {"rate"}, "value": {rate}, "act_id": {id}}, nil)
	}
	first := sluice.NewID().String()
	for _, id := range []string{first, sluice.NewID().String()} {
		if text, status := change(id, "5/s"); status != http.StatusNoContent {
			t.Fatalf("got %d %s", status, text)
		}
	}
	if _, status := change(sluice.NewID().String(), "7/s"); status != http.StatusNoContent {
		t.Errorf("the last change: %d", status)
	}
	if text, status := change(first, "5/s"); status != http.StatusNoContent {
		t.Errorf("sent again: %d %s", status, text)
	}
	late := sluice.NewID()
	late[0]++
	for _, id := range []string{"", "act", late.String()} {
		if text, _ := change(id, "5/s"); !strings.Contains(text, "opened too long ago") || strings.Contains(text, `name="act_id" value="`+id+`"`) {
			t.Errorf("ID %q: got %s, want a refusal, and an ID for the next time", id, text)
		}
	}
	s.has("/queues/mail", "<strong>7/s</strong>")
}

// TestReasonsAreAskedForWhereARouteTakesOne: a route that knows no reason refuses the request, when somebody gives one.
func TestReasonsAreAskedForWhereARouteTakesOne(t *testing.T) {
	t.Parallel()
	var described struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Parameters  []struct {
				Name string `json:"name"`
			} `json:"parameters"`
			Body struct {
				Content map[string]struct {
					Schema struct {
						Ref string `json:"$ref"`
					} `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(httpapi.OpenAPI(), &described); err != nil {
		t.Fatal(err)
	}
	takes := make(map[string]bool)
	for _, methods := range described.Paths {
		for _, op := range methods {
			schema := strings.TrimPrefix(op.Body.Content["application/json"].Schema.Ref, "#/components/schemas/")
			_, takes[op.OperationID] = described.Components.Schemas[schema].Properties["reason"]
			for _, parameter := range op.Parameters {
				takes[op.OperationID] = takes[op.OperationID] || parameter.Name == "reason"
			}
		}
	}
	acts := console.RoutesOfReasons()
	if len(acts) < 50 {
		t.Errorf("only %d acts ask for a reason", len(acts))
	}
	for act, route := range acts {
		if !takes[route] {
			t.Errorf("the act %s asks for a reason, and its route %s takes none", act, route)
		}
	}
}

func TestTheCommandOfAnActHasAllThatItsDialogAsks(t *testing.T) {
	t.Parallel()
	if missing := console.MissingInCommands(); !slices.Equal(missing, []string{"edit-job payload"}) { // the command takes a file, as the hint says
		t.Errorf("these commands lack what a person fills in: %q", missing)
	}
}
