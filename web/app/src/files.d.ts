/** What the bundler makes of files that are not TypeScript. */

declare module "*.css";

declare module "*.wgsl" {
  const source: string;
  export default source;
}
