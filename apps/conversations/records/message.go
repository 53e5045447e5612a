package records

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/conversation_save.sql
var conversationSaveSQL string

//go:embed sql/message_insert.sql
var messageInsertSQL string

//go:embed sql/log_insert.sql
var logInsertSQL string

//go:embed sql/messages_to_validate.sql
var messagesToValidateSQL string

//go:embed sql/message_validated.sql
var messageValidatedSQL string

//go:embed sql/messages_validated.sql
var messagesValidatedSQL string

// Message is a sanitized message of a conversation.
type Message struct {
	Place   int64 // grows with each message of the file
	ID      string
	Role    string
	Content string
}

// NewMessage is a message on its way in.
type NewMessage struct {
	ID, Conversation, Event, Role string
	// Content is sanitized, by the rules of Version.
	Content, Version string
	// At is when it was said: it may have waited since.
	At time.Time
}

// Removal is something that was removed from a message.
type Removal struct {
	Conversation, Message string
	// Category is its family, Rule what found it, Detector rules or ai.
	Category, Rule, Detector string
	// Hash is keyed, so that nobody can guess what it was.
	Hash, Replacement string
	Confidence        float64
}

// AddMessage stores a message and what was removed from it. It reports false if the message is there already.
func (tx Tx) AddMessage(ctx context.Context, m NewMessage, removals []Removal) (bool, error) {
	if _, err := tx.ExecContext(ctx, conversationSaveSQL, m.Conversation, tx.micros()); err != nil {
		return false, fmt.Errorf("store the conversation: %w", err)
	}
	added, err := changed(ctx, tx, messageInsertSQL, m.ID, m.Conversation, m.Event, m.Role, m.Content, m.Version, m.At.UnixMicro())
	if err != nil || !added {
		return false, err
	}
	return true, tx.addRemovals(ctx, removals)
}

func (tx Tx) addRemovals(ctx context.Context, removals []Removal) error {
	for _, r := range removals {
		_, err := tx.ExecContext(ctx, logInsertSQL, sluice.NewID().String(), r.Conversation, r.Message, r.Category, r.Rule, r.Detector, r.Hash, r.Replacement, r.Confidence, tx.micros())
		if err != nil {
			return fmt.Errorf("store what was removed: %w", err)
		}
	}
	return nil
}

// ToValidate lists the messages of a conversation that AI has not seen.
func (d *Database) ToValidate(ctx context.Context, conversation string) ([]Message, error) {
	return list(ctx, d.Store.DB(), scanMessage, messagesToValidateSQL, conversation)
}

// Validated lists the messages of a conversation that AI has seen.
func (d *Database) Validated(ctx context.Context, conversation string) ([]Message, error) {
	return list(ctx, d.Store.DB(), scanMessage, messagesValidatedSQL, conversation)
}

func scanMessage(rows *sql.Rows, m *Message) error {
	return rows.Scan(&m.Place, &m.ID, &m.Role, &m.Content)
}

// MarkValidated stores a message as AI left it, and what it removed. It reports false if somebody has done so before.
func (tx Tx) MarkValidated(ctx context.Context, m Message, removals []Removal) (bool, error) {
	done, err := changed(ctx, tx, messageValidatedSQL, m.ID, m.Content, tx.micros())
	if err != nil || !done {
		return false, err
	}
	return true, tx.addRemovals(ctx, removals)
}
