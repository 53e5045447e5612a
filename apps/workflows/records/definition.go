package records

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/workflows/graph"
	"github.com/sluice-queue/sluice/tenancy"
)

var (
	//go:embed sql/workspace_save.sql
	workspaceSaveSQL string
	//go:embed sql/workspaces.sql
	workspacesSQL string
	//go:embed sql/workspace_delete.sql
	workspaceDeleteSQL string
	//go:embed sql/definition_save.sql
	definitionSaveSQL string
	//go:embed sql/definition_delete.sql
	definitionDeleteSQL string
	//go:embed sql/attempts_save.sql
	attemptsSaveSQL string
	//go:embed sql/attempts_find.sql
	attemptsFindSQL string
	//go:embed sql/attempts_delete.sql
	attemptsDeleteSQL string
	//go:embed sql/version_insert.sql
	versionInsertSQL string
	//go:embed sql/version_find.sql
	versionFindSQL string
	//go:embed sql/version_delete.sql
	versionDeleteSQL string
)

// ErrConflict: the version is stored with another graph, and a version is never changed.
var ErrConflict = errors.New("stored with another content")

// Workspace is who has workflows executed. It is the tenant of its jobs, and its plan their tier.
type Workspace struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Plan is FREE, PRO or ENTERPRISE.
	Plan string `json:"plan"`
	// MaxAttempts is after how many failed starts and runs an execution is given up. Default: as the queue says.
	MaxAttempts int `json:"max_attempts,omitempty"`
}

// Definition is a workflow definition of a workspace.
type Definition struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// MaxAttempts is that of the workspace, for this definition alone. Default: as the workspace says.
	MaxAttempts int `json:"max_attempts,omitempty"`
}

// name is what workspaces and definitions may be called.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func checkName(what, id string) error {
	if !name.MatchString(id) {
		return &sluice.InvalidError{Field: what, Rule: fmt.Sprintf("%.80q must be 1 to 64 letters, digits and . _ -, the first a letter or a digit", id)}
	}
	return nil
}

// maxAttempts is what Sluice allows a job at the most.
const maxAttempts = 10_000

func checkAttempts(n int) error {
	if n < 0 || n > maxAttempts {
		return &sluice.InvalidError{Field: "max_attempts", Rule: fmt.Sprintf("%d must be from 1 to %d, or 0 for the default", n, maxAttempts)}
	}
	return nil
}

// SaveWorkspace stores a workspace, or changes it. Its tier is changed first: if that is all that comes about, the next
// try sets it right, and so does SyncTiers.
func (d *Database) SaveWorkspace(ctx context.Context, w Workspace, by string) error {
	if err := errors.Join(checkName("workspace", w.ID), checkAttempts(w.MaxAttempts)); err != nil {
		return err
	}
	if !slices.ContainsFunc(tenancy.PresetTiers(), func(t tenancy.Limits) bool { return t.Tier == w.Plan }) {
		return &sluice.InvalidError{Field: "plan", Rule: fmt.Sprintf("%.40q must be FREE, PRO or ENTERPRISE", w.Plan)}
	}
	if _, err := tenancy.SetTier(ctx, d.Store, w.ID, w.Plan, sluice.Act{By: by, Reason: "the plan of the workspace"}); err != nil {
		return fmt.Errorf("save workspace %s: %w", w.ID, err)
	}
	return d.write(ctx, do(workspaceSaveSQL, w.ID, w.Name, w.Plan, now()), do(attemptsSaveSQL, w.ID, "", w.MaxAttempts))
}

// Workspaces lists all workspaces by id.
func (d *Database) Workspaces(ctx context.Context) ([]Workspace, error) {
	return list(ctx, d.db, scanWorkspace, workspacesSQL, "")
}

// Workspace finds a workspace. An unknown one is a sluice.ErrNotFound.
func (d *Database) Workspace(ctx context.Context, id string) (Workspace, error) {
	found, err := list(ctx, d.db, scanWorkspace, workspacesSQL, id)
	if err == nil && (id == "" || len(found) == 0) {
		err = fmt.Errorf("workspace %.80q: %w", id, sluice.ErrNotFound)
	}
	if err != nil {
		return Workspace{}, err
	}
	return found[0], nil
}

func scanWorkspace(rows *sql.Rows, w *Workspace) error {
	return rows.Scan(&w.ID, &w.Name, &w.Plan, &w.MaxAttempts)
}

// SyncTiers puts each workspace into the tier that its plan says, for plans that were changed by plain SQL.
func (d *Database) SyncTiers(ctx context.Context, by string) error {
	workspaces, err := d.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, w := range workspaces {
		tenant, err := tenancy.Given(d.Store).Tenant(ctx, w.ID)
		if err != nil && !errors.Is(err, sluice.ErrNotFound) {
			return err
		}
		if tenant.Tier == w.Plan {
			continue
		}
		if _, err := tenancy.SetTier(ctx, d.Store, w.ID, w.Plan, sluice.Act{By: by, Reason: "the plan of the workspace"}); err != nil {
			return fmt.Errorf("set the tier of workspace %s: %w", w.ID, err)
		}
	}
	return nil
}

// DeleteWorkspace deletes a workspace with its definitions. Executions that wait end dead, with that reason, when it is
// their turn.
func (d *Database) DeleteWorkspace(ctx context.Context, id string) error {
	return d.write(ctx, do(versionDeleteSQL, id, "", 0), do(definitionDeleteSQL, id, ""), do(attemptsDeleteSQL, id, ""), do(workspaceDeleteSQL, id))
}

// SaveDefinition stores a workflow definition, or changes its name and its attempts.
func (d *Database) SaveDefinition(ctx context.Context, workspace string, definition Definition) error {
	if err := errors.Join(checkName("definition", definition.ID), checkAttempts(definition.MaxAttempts)); err != nil {
		return err
	}
	if _, err := d.Workspace(ctx, workspace); err != nil {
		return err
	}
	return d.write(ctx, do(definitionSaveSQL, workspace, definition.ID, definition.Name, now()),
		do(attemptsSaveSQL, workspace, definition.ID, definition.MaxAttempts))
}

// DeleteDefinition deletes a definition with its versions; see DeleteWorkspace.
func (d *Database) DeleteDefinition(ctx context.Context, workspace, id string) error {
	if err := checkName("definition", id); err != nil {
		return err
	}
	return d.write(ctx, do(versionDeleteSQL, workspace, id, 0), do(attemptsDeleteSQL, workspace, id), do(definitionDeleteSQL, workspace, id))
}

func checkVersion(version int) error {
	if version < 1 || version > 1_000_000 {
		return &sluice.InvalidError{Field: "version", Rule: fmt.Sprintf("%d must be from 1 to 1000000", version)}
	}
	return nil
}

// SaveVersion stores a version of a definition. The same version with the same graph may be stored again; with another
// it is an ErrConflict.
func (d *Database) SaveVersion(ctx context.Context, workspace, definition string, version int, text []byte) error {
	if err := checkVersion(version); err != nil {
		return err
	}
	g, err := graph.Parse(text)
	if err != nil {
		return &sluice.InvalidError{Field: "graph", Rule: err.Error()}
	}
	canonical, err := json.Marshal(g)
	if err != nil {
		return err
	}
	return d.transact(ctx, func(tx tx, _ sluice.Enqueuer) error {
		there, err := thereOf(ctx, tx, workspace, definition, version)
		if err != nil {
			return err
		}
		if !there.workspace || !there.definition {
			return fmt.Errorf("definition %.80q of workspace %.80q: %w", definition, workspace, sluice.ErrNotFound)
		}
		if _, err := tx.ExecContext(ctx, versionInsertSQL, workspace, definition, version, string(canonical), now()); err != nil {
			return err
		}
		stored, err := graphOf(ctx, tx, workspace, definition, version)
		if err == nil && stored != string(canonical) {
			err = fmt.Errorf("version %d of definition %s: %w; store a new version", version, definition, ErrConflict)
		}
		return err
	})
}

// DeleteVersion deletes one version; see DeleteWorkspace.
func (d *Database) DeleteVersion(ctx context.Context, workspace, definition string, version int) error {
	if err := errors.Join(checkName("definition", definition), checkVersion(version)); err != nil {
		return err
	}
	return d.write(ctx, do(versionDeleteSQL, workspace, definition, version))
}

// graphOf finds the graph of a version; empty: it is not there.
func graphOf(ctx context.Context, from querier, workspace, definition string, version int) (string, error) {
	scan := func(rows *sql.Rows, text *string) error { return rows.Scan(text) }
	found, err := list(ctx, from, scan, versionFindSQL, workspace, definition, version)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}

// now is an instant as the tables keep it.
func now() int64 { return time.Now().UnixMicro() }

// instant reads what the tables keep; 0: the zero time.
func instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
