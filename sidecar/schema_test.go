package sidecar

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// schemaField is what the schema says of one field.
type schemaField struct {
	Type                 string
	Default              json.RawMessage
	Enum                 []string
	Minimum, Maximum     *int64
	MinLength            *int
	Pattern, Description string
	Items                *schemaField
	Properties           map[string]schemaField
}

func readSchema(t *testing.T) schemaField {
	t.Helper()
	var schema schemaField
	if err := json.Unmarshal(ConfigSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// F1: the schema has the fields of Config, each once, and no other.
func TestSchemaHasEveryField(t *testing.T) {
	schema := readSchema(t)
	compare := func(where string, properties map[string]schemaField, of reflect.Type, extra ...string) {
		t.Helper()
		want, got := map[string]bool{}, map[string]bool{}
		for i := range of.NumField() {
			want[strings.ToLower(of.Field(i).Name)] = true
		}
		for _, name := range extra {
			want[name] = true
		}
		for name, field := range properties {
			got[strings.ToLower(strings.ReplaceAll(name, "_", ""))] = true
			if field.Description == "" {
				t.Errorf("%s%s has no description", where, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fields of the struct (-) and of the schema (+), %s:\n%s", where, diff)
		}
	}
	compare("", schema.Properties, reflect.TypeFor[Config](), "$schema")
	compare("xfer.", schema.Properties["xfer"].Properties, reflect.TypeFor[Xfer]())
}

// F1: the decoder has the schema's defaults: a file that spells them all out is
// an empty one.
func TestSchemaHasTheDefaults(t *testing.T) {
	spelled := func(properties map[string]schemaField) string {
		var members []string
		for name, field := range properties {
			if field.Default != nil && field.Type != "object" {
				members = append(members, fmt.Sprintf("%q:%s", name, field.Default))
			}
		}
		return strings.Join(members, ",")
	}
	schema := readSchema(t)
	xfer := schema.Properties["xfer"]
	text := "{" + spelled(schema.Properties) + `,"xfer":{` + spelled(xfer.Properties) + "}}"
	cfg, warnings, err := parseConfig([]byte(text))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%s: %v, %v", text, err, warnings)
	}
	if diff := cmp.Diff(defaultConfig(), cfg); diff != "" {
		t.Errorf("%s is not the default (-) but (+):\n%s", text, diff)
	}
	for name, field := range schema.Properties { // what has a value by default says so
		value := reflect.ValueOf(cfg).FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, strings.ReplaceAll(name, "_", "")) })
		if value.IsValid() && !value.IsZero() && field.Default == nil {
			t.Errorf("%s has a default that the schema does not tell", name)
		}
	}
}

// F1, C05: schema and decoder take and refuse the same values: those at, just
// within and just beyond each bound, every word, and every other kind of value.
func TestSchemaHasTheBounds(t *testing.T) {
	schema := readSchema(t)
	tried := 0
	check := func(format string, field schemaField) {
		t.Helper()
		for _, value := range probes(field) {
			tried++
			_, _, err := parseConfig(fmt.Appendf(nil, format, value))
			if field.takes(value) != (err == nil) {
				t.Errorf(format+": the schema takes it: %v; the decoder: %v", value, field.takes(value), err)
			}
		}
	}
	for name, field := range schema.Properties {
		check(`{"`+name+`":%s}`, field)
	}
	for name, field := range schema.Properties["xfer"].Properties {
		check(`{"xfer":{"`+name+`":%s}}`, field)
	}
	if tried < 200 {
		t.Errorf("only %d values tried", tried)
	}
}

// probes are values worth trying on a field.
func probes(field schemaField) []string {
	list := []string{`null`, `true`, `0`, `1`, `-1`, `1.5`, `""`, `"x"`, `"8080"`, `"Deny"`, `"a b"`, `"a/b"`, `[]`, `{}`, `[1]`, `["x"]`,
		`"` + strings.Repeat("x", 31) + `"`, `"` + strings.Repeat("ü", 32) + `"`, `"` + strings.Repeat("x", 40) + `\u00a0"`,
		`"` + strings.Repeat("x", 40) + `\u2003"`, `"` + strings.Repeat("x", 40) + `\u0000"`, `"` + strings.Repeat("x", 40) + ` "`,
		`["http://a","https://B.example:8443","http://[::1]:1"]`, `["http://a/"]`, `["HTTP://a"]`, `["http://u@a"]`, `["a.example"]`, `["http://"]`,
		`["http://a:port"]`, `["http://a",7]`,
		`"127.0.0.1"`, `"127.0.0.1."`, `"300.1.1.1"`, `"01.2.3.4"`, `"[::1]"`, `"::1"`, `"fe80::1%eth0"`, `"a-b.example"`, `"-a"`, `"a.1"`, `"127.0.0.1:80 "`}
	for _, word := range field.Enum {
		list = append(list, `"`+word+`"`, `"`+strings.ToUpper(word)+`"`)
	}
	for _, bound := range []*int64{field.Minimum, field.Maximum} {
		if bound != nil {
			list = append(list, fmt.Sprint(*bound-1), fmt.Sprint(*bound), fmt.Sprint(*bound+1))
		}
	}
	return list
}

// takes judges a value by the keywords that the schema uses.
func (f schemaField) takes(value string) bool {
	var v any
	if json.Unmarshal([]byte(value), &v) != nil {
		return false
	}
	switch v := v.(type) {
	case string:
		if f.Enum != nil {
			for _, word := range f.Enum {
				if v == word {
					return true
				}
			}
			return false
		}
		return f.Type == "string" && (f.MinLength == nil || len([]rune(v)) >= *f.MinLength) &&
			(f.Pattern == "" || regexp.MustCompile(f.Pattern).MatchString(v))
	case float64:
		return f.Type == "integer" && v == float64(int64(v)) && (f.Minimum == nil || int64(v) >= *f.Minimum) && (f.Maximum == nil || int64(v) <= *f.Maximum)
	case []any:
		for _, element := range v {
			text, _ := json.Marshal(element)
			if f.Items == nil || !f.Items.takes(string(text)) {
				return false
			}
		}
		return f.Type == "array"
	case map[string]any:
		return f.Type == "object"
	}
	return false
}
