package remote_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/store/remote"
)

func TestOpenRefusesAddressesThatAreWrongOrShowTheToken(t *testing.T) {
	t.Parallel()
	for address, token := range map[string]string{
		"jobs.example.com": "", "postgres://localhost/x": "", "https://": "", "https://ada:secret@jobs.example.com": "", "https://jobs.example.com?x=1": "",
		"http://jobs.example.com": "sluice_x", "https://jobs.example.com/": "two words",
	} {
		_, err := remote.Open(t.Context(), address, remote.Options{Token: token})
		if !errors.Is(err, sluice.ErrInvalid) || strings.Contains(err.Error(), "ada:secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// answering starts a server that answers each request with a status and a text.
func answering(t *testing.T, status int, text string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestErrorsOfOpenSayWhyNoServerAnswers(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, c := range map[string]struct {
		address string
		want    error
		says    string
	}{
		"nobody listens":   {gone.URL, sluice.ErrUnavailable, "gave up after 300ms"},
		"a proxy's answer": {answering(t, http.StatusBadGateway, "<html>"), sluice.ErrUnavailable, "502"},
		"another server":   {answering(t, http.StatusOK, "<html>"), nil, "not that of a Sluice server"},
		"another path":     {answering(t, http.StatusNotFound, "404 page"), nil, "no Sluice server"},
		"an unknown token": {answering(t, http.StatusUnauthorized, `{"code":"unauthorized","why":"the token is not known","do":"make one"}`), remote.ErrRefused, "the token is not known"},
	} {
		_, err := remote.Open(t.Context(), c.address, remote.Options{CallTimeout: 300 * time.Millisecond})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatNeedsTheDatabaseSaysSo(t *testing.T) {
	t.Parallel()
	store, err := remote.Open(t.Context(), answering(t, http.StatusOK, `{"name":"local"}`), remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, recovered := store.Recover(t.Context(), "mail", 1, "x")
	_, sealing := store.AddAuditSeal(t.Context(), audit.Addition{})
	_, claimed := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "mail", Limit: 1, Holder: "h:1:a", Token: sluice.NewToken(), Engine: "temporal"})
	for name, err := range map[string]error{"upkeep": recovered, "seals": sealing, "an engine's claim": claimed} {
		var unsupported *remote.UnsupportedError
		if !errors.As(err, &unsupported) || !errors.Is(err, errors.ErrUnsupported) || unsupported.What == "" || unsupported.Why == "" || unsupported.Do == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Recover(context.Background(), "mail", 1, "x"); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("a closed store: %v", err)
	}
}
