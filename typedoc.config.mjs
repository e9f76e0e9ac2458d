// The reference of the API that `npm run docs` writes.
import { OptionDefaults } from "typedoc"

/** A word to the compiler, of no interest to a reader. */
const COMPILER_TAG = "@devsWhenUsed"

export default {
    name: "Herdless",
    entryPoints: ["src/index.ts"],
    tsconfig: "src/tsconfig.json",
    out: "docs/api",
    readme: "none",
    excludePrivate: true,
    disableSources: true,
    modifierTags: [...OptionDefaults.modifierTags, COMPILER_TAG],
    excludeTags: [...OptionDefaults.excludeTags, COMPILER_TAG],
    validation: { notExported: false, invalidLink: true },
    treatWarningsAsErrors: true,
}
