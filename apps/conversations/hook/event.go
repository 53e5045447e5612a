// Package hook takes one event of a conversation: it removes what must not be stored, stores the rest together with the job
// that goes on, in one transaction, and is done. It is what a caller waits for, so it does nothing else.
package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
)

// MaxEvent is how many bytes an event may have. A longer one is refused, not cut: half a key is a secret too.
const MaxEvent = 1 << 20

// Event is something that happened in a conversation.
type Event struct {
	// Conversation is a ULID or a UUID.
	Conversation string
	// ID names the message, so that the same event may come twice; a ULID or a UUID. Empty: each event is a new message.
	ID string
	// Name is what happened, such as UserPromptSubmit; Role is user, assistant, system or tool.
	Name, Role string
	// Content is raw: it is neither stored nor logged.
	Content string
}

// ErrMalformed says that an event cannot be read. The text says what is wrong with it, and quotes nothing of it.
var ErrMalformed = errors.New("malformed event")

// wire is an event in the words of the source, or in those of the hooks of Claude Code.
type wire struct {
	Conversation string `json:"conversation_id"`
	Session      string `json:"session_id"`
	ID           string `json:"id"`
	Event        string `json:"event"`
	HookEvent    string `json:"hook_event_name"`
	Role         string `json:"role"`
	Content      string `json:"content"`
	Prompt       string `json:"prompt"`
}

// Read reads one event.
func Read(in io.Reader) (Event, error) {
	text, err := io.ReadAll(io.LimitReader(in, MaxEvent+1))
	if err != nil {
		return Event{}, fmt.Errorf("read the event: %w", err)
	}
	if len(text) > MaxEvent {
		return Event{}, fmt.Errorf("%w: it has more than %d bytes", ErrMalformed, MaxEvent)
	}
	var w wire
	if err := json.Unmarshal(text, &w); err != nil {
		return Event{}, fmt.Errorf("%w: %s", ErrMalformed, reason(text, err))
	}
	e := Event{
		Conversation: first(w.Conversation, w.Session), ID: first(w.ID, sluice.NewID().String()), Name: first(w.Event, w.HookEvent),
		Role: first(w.Role, "user"), Content: first(w.Content, w.Prompt),
	}
	return e, e.check()
}

// reason says why a text is not an event. The error of package json quotes it, so it is not used.
func reason(text []byte, err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return "it is empty"
	case errors.As(err, &syntax):
		return fmt.Sprintf("it is not JSON, from byte %d of %d on", syntax.Offset, len(text))
	case errors.As(err, &kind):
		return fmt.Sprintf("the field that ends at byte %d is not a %s", kind.Offset, kind.Type)
	}
	return "it is not a JSON object"
}

func (e Event) check() error {
	switch {
	case !stages.IsID(e.Conversation):
		return fmt.Errorf("%w: conversation_id (or session_id) is neither a ULID nor a UUID", ErrMalformed)
	case !stages.IsID(e.ID):
		return fmt.Errorf("%w: id is neither a ULID nor a UUID", ErrMalformed)
	case !isName(e.Name):
		return fmt.Errorf("%w: event (or hook_event_name) is not a name such as UserPromptSubmit", ErrMalformed)
	case e.Role != "user" && e.Role != "assistant" && e.Role != "system" && e.Role != "tool":
		return fmt.Errorf("%w: role must be one of user, assistant, system and tool", ErrMalformed)
	case strings.TrimSpace(e.Content) == "":
		return fmt.Errorf("%w: content (or prompt) is empty", ErrMalformed)
	}
	return nil
}

// isName reports whether a text is a name such as UserPromptSubmit.
func isName(text string) bool {
	const upper, lower = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
	return len(text) >= 2 && len(text) <= 41 && strings.Contains(upper, text[:1]) && strings.Trim(text, upper+lower) == ""
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
