package postgres

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
)

var (
	schemaComment = regexp.MustCompile(`(?m)--.*$`)
	// schemaStatement matches statements that create or drop tables, views, triggers and indexes, in the order of
	// the text.
	schemaStatement = regexp.MustCompile(`\bcreate table (?:if not exists )?sluice\.(?P<made>\w+)[^;]*;` +
		`|\bdrop table (?:if exists )?sluice\.(?P<gone>\w+)` +
		`|\bcreate (?:or replace )?view sluice\.(?P<view>\w+)` +
		`|\bdrop view (?:if exists )?sluice\.(?P<unseen>\w+)` +
		`|\bcreate (?:constraint )?trigger (?P<trigger>\w+)[^;]*? on sluice\.(?P<fires>\w+)` +
		`|\bdrop trigger (?:if exists )?(?P<still>\w+) on sluice\.(?P<quiet>\w+)` +
		`|\bcreate (?P<unique>unique )?index (?:if not exists )?(?P<index>\w+) on sluice\.(?P<on>\w+)(?P<rest>[^;]*);` +
		`|\bdrop index (?:if exists )?sluice\.(?P<less>\w+)` +
		`|\balter index sluice\.(?P<old>\w+) rename to (?P<new>\w+)`)
	// columnKey and tableKey match the primary key of a table.
	columnKey = regexp.MustCompile(`(?m)^\s+(\w+) [^,\n]*\bprimary key\b`)
	tableKey  = regexp.MustCompile(`(?m)^\s+primary key \(([^)]*)\)`)
)

// madeIndex is an index that the schema creates.
type madeIndex struct {
	name, table  string
	unique, rest string // of the statement that creates it
	key          string // the columns of a primary key; empty: another index
}

// repair returns the statement that creates the index without locking the table for long.
func (m madeIndex) repair() string {
	if m.key != "" {
		return fmt.Sprintf("alter table sluice.%s add primary key (%s)", m.table, m.key)
	}
	return fmt.Sprintf("create %sindex concurrently %s on sluice.%s %s", m.unique, m.name, m.table, m.rest)
}

// madeSchema is all that the schema files create.
type madeSchema struct {
	tables  []string
	indexes []madeIndex
	// views by name, and triggers as TABLE.TRIGGER.
	views    []string
	triggers []string
}

// making is the result of the steps that were read so far.
type making struct {
	tables, views, triggers map[string]bool
	indexes                 map[string]madeIndex
}

// readSchema reads, once, the tables, views, triggers and indexes of the schema from the schema files. There is no
// other list of them that could be out of date.
var readSchema = sync.OnceValues(func() (madeSchema, error) {
	steps, err := schemaSteps()
	if err != nil {
		return madeSchema{}, err
	}
	m := making{make(map[string]bool), make(map[string]bool), make(map[string]bool), make(map[string]madeIndex)}
	for _, step := range steps {
		text := schemaComment.ReplaceAllString(step.SQL, "")
		for _, found := range schemaStatement.FindAllStringSubmatch(text, -1) {
			m.apply(found)
		}
	}
	return m.sorted(), nil
})

// apply applies one statement of a schema file.
func (m making) apply(found []string) {
	of := func(group string) string { return found[schemaStatement.SubexpIndex(group)] }
	if table := of("made"); table != "" {
		m.tables[table] = true
		if key, has := primaryKey(table, found[0]); has {
			m.indexes[key.name] = key
		}
	}
	if table := of("gone"); table != "" {
		m.drop(table)
	}
	if index := of("index"); index != "" {
		m.indexes[index] = madeIndex{name: index, table: of("on"), unique: of("unique"), rest: strings.Join(strings.Fields(of("rest")), " ")}
	}
	delete(m.indexes, of("less"))
	if old := of("old"); old != "" {
		index := m.indexes[old]
		delete(m.indexes, old)
		index.name = of("new")
		m.indexes[index.name] = index
	}
	if view := of("view"); view != "" {
		m.views[view] = true
	}
	delete(m.views, of("unseen"))
	if trigger := of("trigger"); trigger != "" {
		m.triggers[of("fires")+"."+trigger] = true
	}
	delete(m.triggers, of("quiet")+"."+of("still"))
}

// drop removes a table and everything that depends on it.
func (m making) drop(table string) {
	delete(m.tables, table)
	for name, index := range m.indexes {
		if index.table == table {
			delete(m.indexes, name)
		}
	}
	for trigger := range m.triggers {
		if strings.HasPrefix(trigger, table+".") {
			delete(m.triggers, trigger)
		}
	}
}

// primaryKey finds the index behind a table's primary key.
func primaryKey(table, text string) (madeIndex, bool) {
	columns := ""
	if found := tableKey.FindStringSubmatch(text); found != nil {
		columns = found[1]
	} else if found := columnKey.FindStringSubmatch(text); found != nil {
		columns = found[1]
	}
	return madeIndex{name: table + "_pkey", table: table, key: columns}, columns != ""
}

func (m making) sorted() madeSchema {
	made := madeSchema{
		tables: append([]string{"migration"}, slices.Collect(maps.Keys(m.tables))...), views: slices.Sorted(maps.Keys(m.views)), triggers: slices.Sorted(maps.Keys(m.triggers)),
		indexes: append([]madeIndex{{name: "migration_pkey", table: "migration", key: "version"}}, slices.Collect(maps.Values(m.indexes))...),
	}
	sort.Strings(made.tables)
	sort.Slice(made.indexes, func(i, j int) bool { return made.indexes[i].name < made.indexes[j].name })
	return made
}
