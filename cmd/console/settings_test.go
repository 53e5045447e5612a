package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
)

// TestARedactionIsTriedWithoutAReason shows the text that the server would keep of an error. The act needs no reason
// even in production, because it changes nothing.
func TestARedactionIsTriedWithoutAReason(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{Environment: "production"})
	s.has("/settings", "Test the redaction", "<dt>Environment</dt><dd><code>production</code></dd>", "<dt>Page of a trace</dt><dd>none</dd>", "<code>--scrub-without</code>")
	if dialog, _ := s.page("/do/test-redaction"); !strings.Contains(dialog, `name="text"`) || strings.Contains(dialog, `name="reason"`) {
		t.Errorf("the dialog asks for the wrong things: %s", dialog)
	}
	for text, want := range map[string]string{"no answer for ada@example.com": "The server keeps: no answer for [redacted:email]", "no answer": "finds no secret in it"} {
		if answer, status := s.do("test-redaction", url.Values{"text": {text}}, nil); status != http.StatusNoContent || !strings.Contains(answer, want) || strings.Contains(answer, "ada@") {
			t.Errorf("%q: %d %s, want %q", text, status, answer, want)
		}
	}
}

func TestSettingsSayWhoLooksAndHow(t *testing.T) {
	t.Parallel()
	end := time.Now().Add(time.Hour)
	facts := &console.Access{Ways: []string{"tokens", "https://id.example.com"}, Address: "[::]:8080", Reach: "other machines can connect", SessionEnd: func(r *http.Request) time.Time {
		if _, err := r.Cookie("session"); err != nil {
			return time.Time{}
		}
		return end
	}}
	s := openAs(t, access.Caller{Name: "token ann", Role: access.RoleViewer, Bounds: access.Bounds{Queues: []string{"mail.*"}}}, console.Options{Access: facts})
	s.has("/settings", "<dt>Known as</dt><dd>token ann, in the audit token ann in the console</dd>", "<dt>Role</dt><dd>viewer</dd>", "<dt>Queues</dt><dd>mail.* </dd>", "<dt>Tenants</dt><dd>all</dd>",
		"there is no session", "tokens, https://id.example.com", "<code>[::]:8080</code>: other machines can connect", "/whoami")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/settings", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.AddCookie(&http.Cookie{Name: "session", Value: "sealed"})
	if text, _ := s.send(request); !strings.Contains(text, "a session, which ends at <time") || strings.Contains(text, "sealed") {
		t.Errorf("got %s, want when the session ends, without its secret", text)
	}
}
