package postgres

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/sluice-queue/sluice/internal/migration"
)

var (
	schemaComment = regexp.MustCompile(`(?m)--.*$`)
	// schemaStatement finds what makes and unmakes tables and indexes, in the order of the text.
	schemaStatement = regexp.MustCompile(`\bcreate table (?:if not exists )?sluice\.(?P<made>\w+)[^;]*;` +
		`|\bdrop table (?:if exists )?sluice\.(?P<gone>\w+)` +
		`|\bcreate (?P<unique>unique )?index (?:if not exists )?(?P<index>\w+) on sluice\.(?P<on>\w+)(?P<rest>[^;]*);` +
		`|\bdrop index (?:if exists )?sluice\.(?P<less>\w+)` +
		`|\balter index sluice\.(?P<old>\w+) rename to (?P<new>\w+)`)
	// columnKey and tableKey find the primary key of a table.
	columnKey = regexp.MustCompile(`(?m)^\s+(\w+) [^,\n]*\bprimary key\b`)
	tableKey  = regexp.MustCompile(`(?m)^\s+primary key \(([^)]*)\)`)
)

// madeIndex is an index that the schema makes.
type madeIndex struct {
	name, table  string
	unique, rest string // of the statement that makes it
	key          string // the columns, if it is that of a primary key
}

// mend is the statement that makes it, in the way that keeps nobody from the table for long.
func (m madeIndex) mend() string {
	if m.key != "" {
		return fmt.Sprintf("alter table sluice.%s add primary key (%s)", m.table, m.key)
	}
	return fmt.Sprintf("create %sindex concurrently %s on sluice.%s %s", m.unique, m.name, m.table, m.rest)
}

// madeSchema is what the schema files make in all.
type madeSchema struct {
	tables  []string
	indexes []madeIndex
}

// readSchema reads from the schema files which tables and indexes there must be. There is no other list of them, so that
// none can be out of date.
func readSchema() (madeSchema, error) {
	steps, err := migration.Steps(schemaFiles, "schema")
	if err != nil {
		return madeSchema{}, err
	}
	tables, indexes := make(map[string]bool), make(map[string]madeIndex)
	for _, step := range steps {
		text := schemaComment.ReplaceAllString(step.SQL, "")
		for _, found := range schemaStatement.FindAllStringSubmatch(text, -1) {
			apply(found, tables, indexes)
		}
	}
	return sorted(tables, indexes), nil
}

// apply follows one statement of a schema file.
func apply(found []string, tables map[string]bool, indexes map[string]madeIndex) {
	of := func(group string) string { return found[schemaStatement.SubexpIndex(group)] }
	if table := of("made"); table != "" {
		tables[table] = true
		if key, has := primaryKey(table, found[0]); has {
			indexes[key.name] = key
		}
	}
	if table := of("gone"); table != "" {
		delete(tables, table)
		for name, index := range indexes {
			if index.table == table {
				delete(indexes, name)
			}
		}
	}
	if index := of("index"); index != "" {
		indexes[index] = madeIndex{name: index, table: of("on"), unique: of("unique"), rest: strings.Join(strings.Fields(of("rest")), " ")}
	}
	delete(indexes, of("less"))
	if old := of("old"); old != "" {
		index := indexes[old]
		delete(indexes, old)
		index.name = of("new")
		indexes[index.name] = index
	}
}

// primaryKey finds the index behind the primary key of a table.
func primaryKey(table, text string) (madeIndex, bool) {
	columns := ""
	if found := tableKey.FindStringSubmatch(text); found != nil {
		columns = found[1]
	} else if found := columnKey.FindStringSubmatch(text); found != nil {
		columns = found[1]
	}
	return madeIndex{name: table + "_pkey", table: table, key: columns}, columns != ""
}

func sorted(tables map[string]bool, indexes map[string]madeIndex) madeSchema {
	made := madeSchema{tables: []string{"migration"}, indexes: []madeIndex{{name: "migration_pkey", table: "migration", key: "version"}}}
	for table := range tables {
		made.tables = append(made.tables, table)
	}
	for _, index := range indexes {
		made.indexes = append(made.indexes, index)
	}
	sort.Strings(made.tables)
	sort.Slice(made.indexes, func(i, j int) bool { return made.indexes[i].name < made.indexes[j].name })
	return made
}
