package webhook_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/alert/webhook"
)

var secret = []byte("hush")

// hook returns a webhook to a server with the given handler.
func hook(t *testing.T, answer http.HandlerFunc) *webhook.Webhook {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	h, err := webhook.New(server.URL+"/services/token", webhook.Options{Secret: secret, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestWebhookSendsSignedJSON(t *testing.T) {
	t.Parallel()
	message := alert.Message{ID: sluice.NewID(), Event: alert.Fires, Rule: "clock", Message: "a < b"}
	h := hook(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/services/token" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s %s, %v", r.Method, r.URL, err)
		}
		if !strings.Contains(string(body), `"rule":"clock"`) || r.Header.Get(webhook.IDHeader) != message.ID.String() {
			t.Errorf("got %s", body)
		}
		header := r.Header.Get(webhook.SignatureHeader)
		for name, check := range map[string]struct {
			secret []byte
			body   string
			at     time.Time
			well   bool
		}{
			"as it was sent":      {secret, string(body), time.Now(), true},
			"by another secret":   {[]byte("other"), string(body), time.Now(), false},
			"with another body":   {secret, string(body) + " ", time.Now(), false},
			"an hour later again": {secret, string(body), time.Now().Add(time.Hour), false},
		} {
			if err := webhook.Verify(check.secret, header, []byte(check.body), check.at, time.Minute); (err == nil) != check.well {
				t.Errorf("%s: %v", name, err)
			}
		}
		if webhook.Verify(secret, "", body, time.Now(), time.Minute) == nil || webhook.Verify(secret, "t=x,v1=00", body, time.Now(), time.Minute) == nil {
			t.Error("an empty or a wrong signature was accepted, want an error")
		}
		w.WriteHeader(http.StatusNoContent)
	})
	if err := h.Notify(t.Context(), message); err != nil {
		t.Error(err)
	}
}

func TestWebhookThatDoesNotTakeAMessageRefusesIt(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"an error":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"a refusal":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			h := hook(t, func(w http.ResponseWriter, r *http.Request) { calls++; answer(w, r) })
			var refused *alert.RefusedError
			if err := h.Notify(t.Context(), alert.Message{}); !errors.As(err, &refused) || calls != 1 {
				t.Errorf("after %d calls it gives %v", calls, err)
			}
		})
	}
}

func TestWebhookTellsNoSecretWhenItIsNotReached(t *testing.T) {
	t.Parallel()
	h, err := webhook.New("http://user:hush@127.0.0.1:1/services/token?key=hush", webhook.Options{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	err = h.Notify(t.Context(), alert.Message{})
	var refused *alert.RefusedError
	if err == nil || errors.As(err, &refused) {
		t.Fatalf("it gives %v", err)
	}
	for _, word := range []string{"token", "hush"} {
		if strings.Contains(err.Error()+h.Name(), word) {
			t.Errorf("%s tells %s: %v", h.Name(), word, err)
		}
	}
	for _, address := range []string{"", "ftp://example.com", "https://", "example.com/hook"} {
		if _, err := webhook.New(address, webhook.Options{}); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%q gives %v", address, err)
		}
	}
}

func TestWebhookThatHangsEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	called, over := make(chan struct{}), make(chan struct{})
	h := hook(t, func(http.ResponseWriter, *http.Request) { close(called); <-over })
	defer close(over)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-called; cancel() }()
	if err := h.Notify(ctx, alert.Message{}); !errors.Is(err, context.Canceled) {
		t.Errorf("it gives %v", err)
	}
}
