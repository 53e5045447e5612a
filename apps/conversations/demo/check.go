package demo

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ipfs/go-cid"

	"github.com/sluice-queue/sluice/apps/conversations/hook"
	"github.com/sluice-queue/sluice/apps/conversations/measure"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/apps/conversations/upload"
)

//go:embed sql/totals.sql
var totalsSQL string

//go:embed sql/took.sql
var tookSQL string

//go:embed sql/tables.sql
var tablesSQL string

// totals are what is there at the end.
type totals struct {
	conversations, messages, unvalidated, unextracted, learnings, confirmed, unfinished int
	attempts, recoveries, byRules, byMind                                               int
}

// check is a line of the proof.
type check struct {
	what     string
	is, want int
	note     string
}

// prove looks at the tables, the chain, the IPFS node and every file.
func (d *demo) prove(ctx context.Context) error {
	checks, err := d.checks(ctx)
	if err != nil {
		return fmt.Errorf("prove: %w", err)
	}
	fmt.Fprintf(d.Out, "\nThe proof, by the tables, the chain, the IPFS node, and every byte in %s:\n\n", d.Folder)
	holds := true
	for _, c := range checks {
		mark := "ok"
		if c.is != c.want {
			mark, holds = "WRONG", false
		}
		fmt.Fprintln(d.Out, strings.TrimRight(fmt.Sprintf("  %-5s  %5d  %-46s %s", mark, c.is, c.what, c.note), " "))
	}
	budgets, err := d.budgets(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "\nWhat it took, against the budgets of the source:\n\n")
	kept := measure.Print(d.Out, budgets)
	if !holds || d.Budgets && !kept {
		return ErrCheck
	}
	return nil
}

func (d *demo) checks(ctx context.Context) ([]check, error) {
	var t totals
	err := d.db.Store.DB().QueryRowContext(ctx, totalsSQL).Scan(&t.conversations, &t.messages, &t.unvalidated, &t.unextracted, &t.learnings,
		&t.confirmed, &t.unfinished, &t.attempts, &t.recoveries, &t.byRules, &t.byMind)
	if err != nil {
		return nil, err
	}
	found, cids, err := d.searchEach(ctx)
	if err != nil {
		return nil, err
	}
	once, more, err := d.onChain(ctx)
	if err != nil {
		return nil, err
	}
	held, err := d.inIPFS(ctx, cids)
	if err != nil {
		return nil, err
	}
	tables, files, err := d.leaks(ctx)
	if err != nil {
		return nil, err
	}
	spool := hook.SpoolOf(d.file())
	waiting, err := spool.Waiting()
	if err != nil {
		return nil, err
	}
	n := d.Conversations
	return []check{
		{"conversations stored", t.conversations, n, ""},
		{"messages stored", t.messages, 3 * n, fmt.Sprintf("%d secrets removed by rules, %d by the second stage", t.byRules, t.byMind)},
		{"events left in the spool", waiting + spool.Aside(), 0, fmt.Sprintf("%d waited there when the file was locked", d.spooled)},
		{"messages not validated", t.unvalidated, 0, ""},
		{"conversations not learnt from", t.unextracted, 0, ""},
		{"learnings, those that are alike once", t.learnings, n + 1, ""},
		{"learnings found by a word of theirs", found, n, ""},
		{"uploads confirmed", t.confirmed, t.learnings, ""},
		{"learnings recorded once on the chain", once, t.learnings, ""},
		{"learnings recorded more than once", more, 0, ""},
		{"learnings that the IPFS node gives back", held, t.learnings, "and whose hash is right"},
		{"jobs not completed", t.unfinished, 0, ""},
		{"attempts burnt", t.attempts, 0, fmt.Sprintf("%d recoveries, which do not count", t.recoveries)},
		{"secrets in tables", tables, 0, fmt.Sprintf("%d were planted", 3*n)},
		{"secrets in files, logs among them", files, 0, ""},
	}, nil
}

// searchEach looks for the learning of each conversation, and gives the CIDs of all learnings.
func (d *demo) searchEach(ctx context.Context) (found int, cids []string, err error) {
	seen := make(map[string]bool)
	for _, c := range d.conversations {
		hits, err := d.db.Search(ctx, c.topic, 10)
		if err != nil {
			return 0, nil, err
		}
		if len(hits) == 1 {
			found++
			seen[hits[0].CID] = true
		}
	}
	hits, err := d.db.Search(ctx, "migrations before", 10)
	for _, hit := range hits {
		seen[hit.CID] = true
	}
	for id := range seen {
		cids = append(cids, id)
	}
	return found, cids, err
}

// onChain counts what the registry has logged once, and more often.
func (d *demo) onChain(ctx context.Context) (once, more int, err error) {
	approved, err := upload.Approve(d.chain.URL)
	if err != nil {
		return 0, 0, err
	}
	chain, err := upload.DialChain(ctx, approved.Client(), d.chain.URL, d.chain.Contract, d.chain.KeyRef)
	if err != nil {
		return 0, 0, err
	}
	defer chain.Close()
	recorded, err := chain.Recorded(ctx)
	for _, times := range recorded {
		if times == 1 {
			once++
		} else {
			more++
		}
	}
	return once, more, err
}

// inIPFS counts the contents that the node gives back, and that are what their names say.
func (d *demo) inIPFS(ctx context.Context, cids []string) (held int, err error) {
	for _, text := range cids {
		id, err := cid.Decode(text)
		if err != nil {
			return held, fmt.Errorf("CID %q: %w", text, err)
		}
		content, err := upload.GetIPFS(ctx, &http.Client{Timeout: time.Minute}, d.ipfs.URL, id)
		if err != nil {
			return held, err
		}
		if got, err := upload.CIDOf(content); err == nil && got.Equals(id) {
			held++
		}
	}
	return held, nil
}

// leaks counts the planted secrets that are anywhere in a table, and in a file of the folder.
func (d *demo) leaks(ctx context.Context) (tables, files int, err error) {
	var secrets []string
	for _, c := range d.conversations {
		secrets = append(secrets, c.secrets...)
	}
	rows, err := d.everything(ctx)
	if err != nil {
		return 0, 0, err
	}
	tables = count(rows, secrets)
	if err := d.db.Forget(ctx); err != nil { // as workers do each minute
		return 0, 0, err
	}
	err = filepath.WalkDir(d.Folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // the IPFS node moves its files
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if n := count(content, secrets); n > 0 {
			files += n
			d.tell("%d secrets are in %s", n, path)
		}
		return err
	})
	return tables, files, err
}

func count(content []byte, secrets []string) (n int) {
	for _, secret := range secrets {
		if bytes.Contains(content, []byte(secret)) {
			n++
		}
	}
	return n
}

// everything gives every value of every row of every table.
func (d *demo) everything(ctx context.Context) ([]byte, error) {
	var all bytes.Buffer
	var names []string
	err := d.each(ctx, tablesSQL, func(values []any) { names = append(names, fmt.Sprint(values[0])) })
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		err := d.each(ctx, `select * from "`+name+`"`, func(values []any) {
			for _, value := range values {
				if content, is := value.([]byte); is {
					value = string(content)
				}
				fmt.Fprintln(&all, value)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", name, err)
		}
	}
	return all.Bytes(), nil
}

// each hands over the values of each row.
func (d *demo) each(ctx context.Context, text string, do func(values []any)) error {
	rows, err := d.db.Store.DB().QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, places := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			return err
		}
		do(values)
	}
	return rows.Err()
}

// budgets are those of the hook's processes, and of the stages' jobs.
func (d *demo) budgets(ctx context.Context) ([]measure.Budget, error) {
	all := append(d.hooks.Budgets(), d.blocked.Never("while the file is locked"))
	for _, stage := range []struct {
		queue string
		limit time.Duration
	}{{stages.Validation.Name(), 2 * time.Second}, {stages.Extraction.Name(), 5 * time.Second}, {stages.Uploading.Name(), 30 * time.Second}} {
		b := measure.Budget{Name: stage.queue, Limit: stage.limit}
		rows, err := d.db.Store.DB().QueryContext(ctx, tookSQL, stage.queue)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var micros int64
			if err := rows.Scan(&micros); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			b.Took = append(b.Took, time.Duration(micros)*time.Microsecond)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}
