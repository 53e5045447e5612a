package records

import (
	"context"
	"crypto/sha256"
	"database/sql"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/conversation_extracted_to.sql
var conversationExtractedToSQL string

//go:embed sql/conversation_extracted.sql
var conversationExtractedSQL string

//go:embed sql/learning_insert.sql
var learningInsertSQL string

//go:embed sql/learning_find.sql
var learningFindSQL string

//go:embed sql/learning_search.sql
var learningSearchSQL string

// Learning is something that was learnt in a conversation.
type Learning struct {
	ID       string   `json:"id"`
	Category string   `json:"category"`
	Title    string   `json:"title"`
	Content  string   `json:"content"`
	Tags     []string `json:"tags"`
	// Confidence is from 0 to 1.
	Confidence float64 `json:"confidence"`
	// Sources are the messages that it comes from. They are not uploaded.
	Sources []string `json:"-"`
}

// Hash is the same for learnings that say the same.
func (l Learning) Hash() string {
	sum := sha256.Sum256([]byte(l.Category + ":" + l.Content))
	return hex.EncodeToString(sum[:])
}

// ExtractedTo gives the place of the last message from which learnings were extracted.
func (d *Database) ExtractedTo(ctx context.Context, conversation string) (place int64, err error) {
	place, found, err := one(ctx, d.Store.DB(), func(rows *sql.Rows, row *int64) error { return rows.Scan(row) }, conversationExtractedToSQL, conversation)
	if err == nil && !found {
		err = fmt.Errorf("conversation %s: %w", conversation, sluice.ErrNotFound)
	}
	return place, err
}

// MarkExtracted stores how far learnings were extracted. It reports false if somebody else has done so meanwhile.
func (tx Tx) MarkExtracted(ctx context.Context, conversation string, before, to int64) (bool, error) {
	return changed(ctx, tx, conversationExtractedSQL, conversation, to, before, tx.micros())
}

// AddLearning stores a learning under a new id. It reports false if one that says the same is there.
func (tx Tx) AddLearning(ctx context.Context, conversation string, l Learning) (id string, added bool, err error) {
	id = sluice.NewID().String()
	tags, sources := list0(l.Tags), list0(l.Sources)
	added, err = changed(ctx, tx, learningInsertSQL, id, conversation, l.Category, l.Title, l.Content, l.Confidence, tags, sources, l.Hash(), tx.micros())
	return id, added, err
}

// list0 is a list as JSON; an empty one is no null.
func list0(all []string) string {
	text, _ := json.Marshal(append([]string{}, all...)) // strings can be written
	return string(text)
}

// Learning looks a learning up. An unknown one is a sluice.ErrNotFound.
func (d *Database) Learning(ctx context.Context, id string) (Learning, error) {
	l, found, err := one(ctx, d.Store.DB(), func(rows *sql.Rows, l *Learning) error {
		var tags, hash string
		if err := rows.Scan(&l.ID, &l.Category, &l.Title, &l.Content, &l.Confidence, &tags, &hash); err != nil {
			return err
		}
		return json.Unmarshal([]byte(tags), &l.Tags)
	}, learningFindSQL, id)
	if err == nil && !found {
		err = fmt.Errorf("learning %s: %w", id, sluice.ErrNotFound)
	}
	return l, err
}

// Found is a learning that a search found, and how far its upload is.
type Found struct {
	Learning
	Status, CID string
}

// Search finds learnings that have all of the words, the best first.
func (d *Database) Search(ctx context.Context, words string, limit int) ([]Found, error) {
	var quoted []string // so that nothing in them means anything to FTS5
	for _, word := range strings.Fields(words) {
		quoted = append(quoted, `"`+strings.ReplaceAll(word, `"`, `""`)+`"`)
	}
	if len(quoted) == 0 {
		return nil, nil
	}
	return list(ctx, d.Store.DB(), func(rows *sql.Rows, f *Found) error {
		return rows.Scan(&f.ID, &f.Category, &f.Title, &f.Content, &f.Confidence, &f.Status, &f.CID)
	}, learningSearchSQL, strings.Join(quoted, " "), limit)
}
