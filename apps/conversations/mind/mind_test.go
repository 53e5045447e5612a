package mind_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/apps/conversations/mind"
	"github.com/sluice-queue/sluice/apps/conversations/records"
)

func TestRulesFindNamesAgainWhereTheyStandAlone(t *testing.T) {
	t.Parallel()
	found, err := mind.Local{}.Validate(t.Context(), []records.Message{
		{ID: "1", Content: "My name is Ada Lovelace, I live at 12 Long Green Street."},
		{ID: "2", Content: "Ask Ada Lovelace or the Go Team."},
		{ID: "3", Content: "Thanks, it works. This is fine. I am Happy"},
	})
	got := make(map[string]bool)
	for _, f := range found {
		got[f.MessageID+" "+f.Category+" "+f.Text] = true
	}
	if err != nil || len(got) != 3 || !got["1 name Ada Lovelace"] || !got["2 name Ada Lovelace"] || !got["1 address 12 Long Green Street"] {
		t.Errorf("found %v, %v", got, err)
	}
}

func TestRulesFindLearningsInTheCategoriesWanted(t *testing.T) {
	t.Parallel()
	messages := []records.Message{{ID: "1", Content: "Hello. The fix was to share one pool of SQLite connections. Always close the rows that you have opened! OK."}}
	all, err := mind.Local{}.Extract(t.Context(), messages, nil)
	if err != nil || len(all) != 2 || all[0].Category != "bug_fix" || all[0].Tags[0] != "sqlite" || all[1].Category != "best_practice" {
		t.Errorf("learnt %+v, %v", all, err)
	}
	some, err := mind.Local{}.Extract(t.Context(), messages, []string{"best_practice"})
	if err != nil || len(some) != 1 {
		t.Errorf("learnt %+v, %v", some, err)
	}
}

// answering serves the API with one answer. It returns a client, and the last request.
func answering(t *testing.T, status int, text string) (claude *mind.Claude, asked *string) {
	t.Helper()
	asked = new(string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = r.URL.Path + " " + r.Header.Get("X-Api-Key") + " " + string(body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status != http.StatusOK {
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"you sent `+text+`"}}`)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
			"content": []any{map[string]any{"type": "text", "text": text}}, "usage": map[string]any{"input_tokens": 1, "output_tokens": 1},
		})
	}))
	t.Cleanup(server.Close)
	return mind.NewClaude("the-key", "", server.URL, server.Client()), asked
}

func TestClaudeIsAskedWithASchemaAndItsAnswerIsRead(t *testing.T) {
	t.Parallel()
	messages := []records.Message{{ID: "m1", Role: "user", Content: "I am Ada"}}
	claude, asked := answering(t, http.StatusOK, `{"findings":[{"message_id":"m1","text":"Ada","category":"name","confidence":0.9}]}`)
	found, err := claude.Validate(t.Context(), messages)
	if err != nil || len(found) != 1 || found[0].Text != "Ada" {
		t.Errorf("found %+v, %v", found, err)
	}
	for _, part := range []string{"/v1/messages the-key ", "json_schema", "I am Ada", mind.DefaultModel} {
		if !strings.Contains(*asked, part) {
			t.Errorf("%q is not in the request %s", part, *asked)
		}
	}
	claude, _ = answering(t, http.StatusOK, `{"learnings":[
		{"category":"pitfall","title":"T","content":"C","confidence":0.8,"tags":["go"],"source_message_ids":["m1"]},
		{"category":"nonsense","title":"T","content":"D","confidence":1,"tags":[],"source_message_ids":[]}]}`)
	learnt, err := claude.Extract(t.Context(), messages, nil)
	if err != nil || len(learnt) != 1 || learnt[0].Sources[0] != "m1" {
		t.Errorf("learnt %+v, %v", learnt, err)
	}
}

func TestErrorsOfClaudeQuoteNothing(t *testing.T) {
	t.Parallel()
	for status, text := range map[int]string{http.StatusBadRequest: "my secret", http.StatusOK: "my secret is no JSON", http.StatusTooManyRequests: "my secret"} {
		claude, _ := answering(t, status, text)
		_, err := claude.Validate(t.Context(), []records.Message{{ID: "1", Content: "x"}})
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "the-key") {
			t.Errorf("%d: %v", status, err)
		}
	}
}
