// Lets TypeScript know of style sheets: esbuild bundles them into `app.css`.
declare module "*.css";
